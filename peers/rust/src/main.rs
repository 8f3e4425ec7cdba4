//! Measures route lookups of Rust libraries on one core, on the table and keys that fullview measures itself with.
//! Formats, protocol and exit codes: peers/README.md.

mod contestants;
mod heap;
mod inputs;
mod measure;

use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use contestants::{Contested, Library};
use measure::{Match, Report};

/// The longest slice.
const LONGEST_NS: u64 = 60_000_000_000;

const USAGE: &str = "usage: rust-lookup [--only CONTESTANT,...] [--serve] FOLDER";

struct Options {
    only: Option<Vec<String>>,
    serve: bool,
    folder: PathBuf,
}

/// Both families; a family without keys stays empty.
struct Matches {
    inet: Match<Ipv4Addr>,
    inet6: Match<Ipv6Addr>,
}

fn main() -> ExitCode {
    let Ok(options) = options().inspect_err(|error| eprintln!("rust-lookup: {error:#}")) else {
        return ExitCode::from(1);
    };
    match run(&options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rust-lookup: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options> {
    let mut options = Options { only: None, serve: false, folder: PathBuf::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => options.only = Some(only(&args.next().context(USAGE)?)?),
            "--serve" => options.serve = true,
            folder if !folder.starts_with('-') && options.folder.as_os_str().is_empty() => {
                options.folder = folder.into();
            }
            _ => bail!(USAGE),
        }
    }
    ensure!(!options.folder.as_os_str().is_empty(), USAGE);
    Ok(options)
}

fn only(list: &str) -> Result<Vec<String>> {
    let known: Vec<String> = names::<Ipv4Addr>().chain(names::<Ipv6Addr>()).collect();
    let list: Vec<String> = list.split(',').map(str::to_owned).collect();
    match list.iter().find(|name| !known.contains(name)) {
        None => Ok(list),
        Some(name) => bail!("--only {name}: no such contestant; the contestants are {}", known.join(", ")),
    }
}

fn names<A: Contested>() -> impl Iterator<Item = String> {
    let libraries: &[Library<A>] = A::LIBRARIES;
    libraries.iter().map(|(name, _)| format!("{name}:1"))
}

fn run(options: &Options) -> Result<ExitCode> {
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| only.iter().any(|known| known == name));
    let matches = Matches {
        inet: Match::prepare(&options.folder, wanted)?,
        inet6: Match::prepare(&options.folder, wanted)?,
    };
    let reports = [matches.inet.report(), matches.inet6.report()];
    ensure!(reports.iter().any(|report| !report.streams.is_empty()), "no key file in the folder");
    println!("{}", ready(reports));
    if options.serve {
        matches.serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (bad, refused) =
        (reports.iter().any(|one| !one.bad.is_empty()), reports.iter().any(|one| !one.refused.is_empty()));
    Ok(ExitCode::from(if bad {
        3
    } else if refused {
        5
    } else {
        0
    }))
}

fn ready(reports: [&Report; 2]) -> Value {
    let both = |list: fn(&Report) -> &Vec<Value>| {
        reports.iter().flat_map(|report| list(report)).cloned().collect::<Value>()
    };
    json!({"ready": true, "pages": pages(), "contestants": both(|report| &report.contestants),
        "streams": both(|report| &report.streams), "facts": both(|report| &report.facts),
        "bad": both(|report| &report.bad), "refused": both(|report| &report.refused)})
}

/// The page size of the heap: run.sh makes the C library request transparent huge pages.
fn pages() -> &'static str {
    let tuned = std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("malloc.hugetlb=1"));
    let kernel = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if tuned && !kernel.is_empty() && !kernel.contains("[never]") { "THP" } else { "4K" }
}

impl Matches {
    /// Answers one line per command until "quit" or the end of input.
    fn serve(&self) -> Result<()> {
        for (number, line) in io::stdin().lock().lines().enumerate() {
            let line = line?;
            if line == "quit" {
                break;
            }
            let answer = self.obey(&line);
            let wrong = |error| json!({"error": format!("command {}: {error}", number + 1)});
            println!("{}", answer.unwrap_or_else(wrong));
            io::stdout().flush()?;
        }
        Ok(())
    }

    fn obey(&self, line: &str) -> Result<Value> {
        let words: Vec<&str> = line.split(' ').collect();
        let ["slice", contestant, stream, lead_in, length] = words[..] else {
            bail!("want: slice PEER:BATCH STREAM LEAD-IN LENGTH (in nanoseconds), or quit");
        };
        let times = [lead_in, length].map(|time| time.parse().ok().filter(|time| *time <= LONGEST_NS));
        let [Some(lead_in), Some(length @ 1..)] = times else {
            bail!("a slice has 1 to {LONGEST_NS} nanoseconds, and its lead-in 0 to {LONGEST_NS}");
        };
        let times = [lead_in, length].map(Duration::from_nanos);
        let slice = self.inet.slice(contestant, stream, times);
        let slice = slice.or_else(|| self.inet6.slice(contestant, stream, times));
        slice.context("no such contestant; the ready line lists them")?
    }
}
