//! The command line: reads options and files, prints the text, returns an exit code.

use super::confidence::Confidence;
use super::error::MinistatError;
use super::output::render;
use super::parse::{ParseError, number, parse};
use super::set::{MOST_SETS, Set};
use super::style::{DEFAULT_WIDTH, Style};
use super::terminal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};

/// The exit code of every failure: wrong options, unreadable files, unusable data.
const FAILURE: u8 = 2;

/// Runs the command. `args` does not contain the program's name. The command reads the named files, or `stdin` for `-` and
/// if no file is named, and prints to `stdout` and `stderr`. If standard output is a terminal, the plot has its width.
///
/// Returns the exit code: 0, or 2 for a failure, which is described on `stderr`.
pub fn main(
    args: impl IntoIterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    run(args, terminal::plot_width().unwrap_or(DEFAULT_WIDTH), stdin, stdout, stderr)
}

/// Does the same as [`main`] with a default width of the plot instead of the terminal's.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    width: usize,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    let outcome = Request::from_args(args, width)
        .and_then(|request| request.answer(stdin))
        .and_then(|text| stdout.write_all(text.as_bytes()).map_err(Failure::Write));
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            // If the error stream fails, the failure cannot be reported.
            let _ = write!(stderr, "{failure}");
            FAILURE
        }
    }
}

/// The failures of the command. Their texts are those of the reference program where scripts may search for them.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{complaint}\n{}", usage())]
    Usage { complaint: String },
    #[error("ministat: Cannot open {name}: {}\n", reason(.cause))]
    Open { name: String, cause: io::Error },
    #[error("ministat: Cannot read {name}: {}\n", reason(.cause))]
    Read { name: String, cause: io::Error },
    #[error("ministat: {cause} in {name}\n")]
    Data { name: String, cause: ParseError },
    #[error("{0}\n")]
    Unfit(#[from] MinistatError),
    #[error("ministat: Cannot write the result: {}\n", reason(.0))]
    Write(io::Error),
}

fn usage() -> String {
    let levels = Confidence::ALL.map(|level| format!("{}%", level.percent())).join(", ");
    format!(
        "Usage: ministat [-Anqs] [-C column] [-c confidence] [-d delimiter(s)] [-w width] [file ...]\n\
         \tconfidence = {{{levels}}}\n\
         \t-A : no plot, only the table and the comparisons\n\
         \t-C : the column that contains the values (default: the first)\n\
         \t-d : characters that separate columns (default: space and tab)\n\
         \t-n : only the table: no plot, no comparisons\n\
         \t-q : no labels of the sets, no header of the table\n\
         \t-s : a separate line for the bar of each set\n\
         \t-w : columns of the plot (default: the terminal's width, or {DEFAULT_WIDTH})\n"
    )
}

/// The system's message without the error number that Rust appends.
fn reason(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// The parsed command line.
#[derive(Debug)]
struct Request {
    style: Style,
    column: usize,
    delimiters: Vec<u8>,
    files: Vec<OsString>,
}

impl Request {
    /// Options end at the first argument that is not an option, or at `--`, like those of POSIX getopt.
    fn from_args(args: impl IntoIterator<Item = OsString>, width: usize) -> Result<Request, Failure> {
        let style = Style { width: Some(width), ..Style::default() };
        let mut request = Request { style, column: 1, delimiters: b" \t".to_vec(), files: Vec::new() };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_encoded_bytes() {
                b"--" => break,
                [b'-', cluster @ ..] if !cluster.is_empty() => request.take_cluster(cluster, &mut args)?,
                _ => {
                    request.files.push(arg);
                    break;
                }
            }
        }
        request.files.extend(args);
        if request.files.len() > MOST_SETS {
            return Err(Failure::Usage { complaint: MinistatError::TooManySets.to_string() });
        }
        Ok(request)
    }

    /// Takes the options after one dash; the value of the last one follows in the same argument or is the next one.
    fn take_cluster(
        &mut self,
        cluster: &[u8],
        args: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), Failure> {
        for (index, &option) in cluster.iter().enumerate() {
            match option {
                b'A' | b'n' | b'q' | b's' => self.set_flag(option),
                b'C' | b'c' | b'd' | b'w' => {
                    let attached = &cluster[index + 1..];
                    if !attached.is_empty() {
                        return self.set_value(option, attached);
                    }
                    let value = args.next().ok_or_else(|| misused("option requires an argument", option))?;
                    return self.set_value(option, value.as_encoded_bytes());
                }
                _ => return Err(misused("illegal option", option)),
            }
        }
        Ok(())
    }

    fn set_flag(&mut self, option: u8) {
        match option {
            b'A' => self.style.plot = false,
            b'n' => (self.style.plot, self.style.compare) = (false, false),
            b'q' => self.style.headers = false,
            _ => self.style.separate_bars = true,
        }
    }

    fn set_value(&mut self, option: u8, value: &[u8]) -> Result<(), Failure> {
        let failure = |complaint: &str| Failure::Usage { complaint: complaint.to_owned() };
        match option {
            b'C' => self.column = column(value).map_err(failure)?,
            b'c' => self.style.confidence = confidence(value).map_err(failure)?,
            b'd' if value.is_empty() => return Err(failure("Can't use empty delimiter string")),
            b'd' => self.delimiters = value.to_vec(),
            _ => self.style.width = Some(width(value).map_err(failure)?),
        }
        Ok(())
    }

    fn answer(&self, stdin: &mut dyn Read) -> Result<String, Failure> {
        Ok(render(&self.sets(stdin)?, &self.style)?)
    }

    /// Opens all files before it reads the first one, so that a wrong name fails at once.
    fn sets(&self, stdin: &mut dyn Read) -> Result<Vec<Set>, Failure> {
        if self.files.is_empty() {
            return Ok(vec![self.set("<stdin>".to_owned(), stdin)?]);
        }
        let sources: Vec<_> = self.files.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
        let named = self.files.iter().map(|name| name.to_string_lossy().into_owned()).zip(sources);
        named
            .map(|(name, source)| match source {
                Some(mut file) => self.set(name, &mut file),
                None => self.set(name, stdin),
            })
            .collect()
    }

    fn set(&self, name: String, source: &mut dyn Read) -> Result<Set, Failure> {
        let mut text = Vec::new();
        if let Err(cause) = source.read_to_end(&mut text) {
            return Err(Failure::Read { name, cause });
        }
        match parse(&text, self.column, &self.delimiters) {
            Ok(values) => Ok(Set { label: name, values }),
            Err(cause) => Err(Failure::Data { name, cause }),
        }
    }
}

/// Opens the file with this name; `None` means standard input, which is `-`.
fn open(name: &OsStr) -> Result<Option<File>, Failure> {
    if name == "-" {
        return Ok(None);
    }
    let failed = |cause| Failure::Open { name: name.to_string_lossy().into_owned(), cause };
    File::open(name).map(Some).map_err(failed)
}

fn misused(what: &str, option: u8) -> Failure {
    Failure::Usage { complaint: format!("ministat: {what} -- {}\nUnknown option", char::from(option)) }
}

fn column(value: &[u8]) -> Result<usize, &'static str> {
    let column = integer(value).ok_or("Invalid column number.")?;
    usize::try_from(column).ok().filter(|&column| column > 0).ok_or("Column number should be positive.")
}

fn confidence(value: &[u8]) -> Result<Confidence, &'static str> {
    let percent = number(value).ok_or("Not a floating point number")?;
    Confidence::from_percent(percent).ok_or("No support for confidence level")
}

fn width(value: &[u8]) -> Result<usize, &'static str> {
    let width = integer(value).ok_or("Invalid width, not a number.")?;
    usize::try_from(width).map_err(|_| "Unable to move beyond left margin.")
}

fn integer(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value.trim_ascii_start()).ok()?.parse().ok()
}
