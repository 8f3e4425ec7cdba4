//! `fullview table`: loads, converts, checks or generates routing tables.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use comfy_table::presets::NOTHING;
use fullview_table::feed::synthetic::Synthetic;
use fullview_table::feed::write::{Dialect, Numbers, WriteError, write};
use fullview_table::feed::{self, Compression, Loaded, NextHopModel};
use fullview_table::fib::Algorithm;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::rib::Summary;
use fullview_table::{Rib, Table, probe};
use serde_json::json;

use super::{BadInput, Exit};
use crate::args::{ConvertArgs, Feed, Format, NumbersAs, ShowArgs, SynthesizeArgs, TableCommand, VerifyArgs};
use crate::command::output::{replace, stdout};
use fullview_router::feed::load_feed;
use fullview_router::progress;

/// The oracle `linear` looks at every route for every key: on larger tables it runs only if the user names it.
const LARGEST_FOR_LINEAR: usize = 20_000;

/// The number of random keys, in addition to the edges of every prefix.
const RANDOM_KEYS: usize = 1_000_000;

pub fn run(command: &TableCommand) -> anyhow::Result<Exit> {
    match command {
        TableCommand::Show(args) => show(args),
        TableCommand::Convert(args) => convert(args),
        TableCommand::Verify(args) => verify(args),
        TableCommand::Synthesize(args) => synthesize(args),
        TableCommand::Calibrate(args) => super::calibrate::run(args),
    }
}

fn load(feed: &Feed) -> anyhow::Result<Loaded> {
    ensure!(feed.next_hops > 0, BadInput("--next-hops 0: a route needs a next hop".into()));
    let next_hops = NextHopModel { count: feed.next_hops, seed: feed.seed, ..NextHopModel::default() };
    Ok(load_feed(&feed.file, next_hops)?)
}

fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let loaded = load(&args.feed)?;
    let summaries = [loaded.table.inet.summary(), loaded.table.inet6.summary()];
    let mut out = stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &as_json(&loaded, &summaries))?;
        writeln!(out)?;
        return Ok(Exit::Done);
    }
    let report = &loaded.report;
    writeln!(out, "{}: {}, {}", args.feed.file.display(), name(report.format), packed(report.compression))?;
    writeln!(
        out,
        "{} records, {} skipped, {} malformed paths, {} routes came without next hop",
        report.records, report.skipped, report.malformed_paths, report.without_next_hop
    )?;
    for summary in &summaries {
        writeln!(out, "\n{}: {} routes, {} next hops", summary.family, summary.prefixes, summary.next_hops)?;
        writeln!(out, "{}", lengths(summary))?;
    }
    Ok(Exit::Done)
}

fn name(format: feed::Format) -> &'static str {
    match format {
        feed::Format::Text => "text",
        feed::Format::Mrt => "MRT",
    }
}

fn packed(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "plain",
        Compression::Gzip => "gzip",
        Compression::Bzip2 => "bzip2",
        Compression::Zstd => "zstd",
    }
}

fn lengths(summary: &Summary) -> String {
    let used = summary.lengths.iter().enumerate().filter(|(_, count)| **count > 0);
    used.map(|(length, count)| format!("/{length} {count}")).collect::<Vec<_>>().join("  ")
}

fn as_json(loaded: &Loaded, summaries: &[Summary; 2]) -> serde_json::Value {
    let families = summaries.iter().map(|summary| {
        let facts =
            json!({ "routes": summary.prefixes, "next_hops": summary.next_hops, "lengths": summary.lengths });
        (summary.family.name().to_owned(), facts)
    });
    let report = &loaded.report;
    json!({
        "format": name(report.format),
        "compression": packed(report.compression),
        "records": report.records,
        "skipped": report.skipped,
        "without_next_hop": report.without_next_hop,
        "malformed_paths": report.malformed_paths,
        "families": serde_json::Map::from_iter(families),
    })
}

fn convert(args: &ConvertArgs) -> anyhow::Result<Exit> {
    let table = load(&args.feed)?.table;
    let numbers = match args.numbers {
        NumbersAs::Blackhole => Numbers::Blackhole,
        NumbersAs::TestAddresses => Numbers::TestAddresses,
    };
    let dialect = match args.to {
        Format::Bird => Dialect::Bird(numbers),
        Format::Ip => Dialect::IpBatch(numbers),
        Format::Text => Dialect::Text,
    };
    write_to(args.output.as_deref(), &table, dialect)
}

fn synthesize(args: &SynthesizeArgs) -> anyhow::Result<Exit> {
    ensure!(args.next_hops > 0, BadInput("--next-hops 0: a route needs a next hop".into()));
    ensure!(
        args.inet + args.inet6 > 0,
        BadInput("--inet 0 --inet6 0: a table needs at least one route".into())
    );
    let next_hops = NextHopModel { count: args.next_hops, seed: args.seed, ..NextHopModel::default() };
    let synthetic = Synthetic { inet: args.inet, inet6: args.inet6, next_hops, seed: args.seed };
    let table = synthetic.table().map_err(|error| BadInput(error.to_string()))?;
    write_to(args.output.as_deref(), &table, Dialect::Text)
}

fn write_to(output: Option<&Path>, table: &Table, dialect: Dialect) -> anyhow::Result<Exit> {
    match output {
        None => flushed(BufWriter::new(stdout()), table, dialect)?,
        Some(path) => replace(path, |out| flushed(out, table, dialect))
            .with_context(|| format!("{}: cannot write", path.display()))?,
    }
    Ok(Exit::Done)
}

fn flushed(mut out: impl Write, table: &Table, dialect: Dialect) -> anyhow::Result<()> {
    write(table, dialect, &mut out).map_err(|error| match error {
        WriteError::Io(closed) if closed.kind() == ErrorKind::BrokenPipe => closed.into(),
        error => anyhow::Error::from(error),
    })?;
    Ok(out.flush()?)
}

fn verify(args: &VerifyArgs) -> anyhow::Result<Exit> {
    let table = load(&args.feed)?.table;
    if let Some(name) = &args.algorithm {
        let known = registry::find::<u32>(name).is_some() || registry::find::<u128>(name).is_some();
        let names = [registry::names::<u32>(), registry::names::<u128>()].concat().join(", ");
        ensure!(known, BadInput(format!("there is no lookup algorithm {name:?}: there are {names}")));
    }
    let mut lines = comfy_table::Table::new();
    lines.load_style(NOTHING);
    lines.set_header(["family", "algorithm", "keys", "bytes", "compiled in", "result"]);
    let wrong = verify_family(&table.inet, args, &mut lines) + verify_family(&table.inet6, args, &mut lines);
    writeln!(stdout(), "{lines}")?;
    ensure!(wrong == 0, "{wrong} algorithms do not answer like the table");
    Ok(Exit::Done)
}

/// Verifies the algorithms of a family, each with a line in the table; returns how many fail.
fn verify_family<A: Registered>(rib: &Rib<A>, args: &VerifyArgs, lines: &mut comfy_table::Table) -> usize {
    let asked = args.algorithm.as_deref();
    let named = |name: &str| asked.is_none_or(|asked| asked == name);
    let mut wrong = 0;
    for algorithm in A::ALGORITHMS.iter().filter(|algorithm| named(algorithm.name())) {
        let row = match is_left_out(asked, algorithm.name(), rib.len()) {
            true => Ok(["", "", "", "left out: slow on so large a table; --algorithm linear runs it"]
                .map(str::to_owned)),
            false => compiled_and_checked(rib, *algorithm),
        };
        wrong += usize::from(row.is_err());
        let cells = row.unwrap_or_else(|error| [String::new(), String::new(), String::new(), error]);
        let names = [A::FAMILY.name(), algorithm.name()].map(str::to_owned);
        lines.add_row([&names[..], &cells].concat());
    }
    wrong
}

/// Whether an algorithm is too slow to be verified unasked.
fn is_left_out(asked: Option<&str>, name: &str, routes: usize) -> bool {
    asked.is_none() && name == "linear" && routes > LARGEST_FOR_LINEAR
}

/// The cells of an algorithm's line: keys, bytes, seconds and "right". The error is the last cell of one that fails.
fn compiled_and_checked<A: Registered>(
    rib: &Rib<A>,
    algorithm: &dyn Algorithm<A>,
) -> Result<[String; 4], String> {
    let name = format!("{} {}", A::FAMILY.name(), algorithm.name());
    let started = Instant::now();
    let fib = {
        let _spinner = progress::spinner(&name);
        algorithm.compile(rib).map_err(|error| error.to_string())?.fib()
    };
    let seconds = started.elapsed().as_secs_f64();
    let bar = progress::keys(&name, keys(rib).count());
    let checked = probe::verify(fib.as_ref(), rib, bar.wrap_iter(keys(rib)));
    bar.finish_and_clear();
    let keys = checked.map_err(|wrong| wrong.to_string())?;
    Ok([keys.to_string(), fib.footprint().total().to_string(), format!("{seconds:.3} s"), "right".into()])
}

/// The keys to look up: the edges of every prefix, and random keys.
fn keys<A: Registered>(rib: &Rib<A>) -> impl Iterator<Item = A> {
    let random = probe::uniform::<A>(1).take(RANDOM_KEYS).chain(probe::in_prefix(rib, 2).take(RANDOM_KEYS));
    probe::edges(rib).chain(random)
}

#[cfg(test)]
mod tests {
    use super::{LARGEST_FOR_LINEAR, is_left_out};

    #[test]
    fn only_what_was_not_asked_for_by_name_is_left_out() {
        assert!(is_left_out(None, "linear", LARGEST_FOR_LINEAR + 1));
        assert!(!is_left_out(Some("linear"), "linear", LARGEST_FOR_LINEAR + 1));
        assert!(!is_left_out(None, "linear", LARGEST_FOR_LINEAR));
        assert!(!is_left_out(None, "radix", LARGEST_FOR_LINEAR + 1));
    }
}
