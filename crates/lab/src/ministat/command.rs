//! The command: options and files in, text and an exit code out.

use super::parse::{ParseError, number, parse};
use super::{Confidence, DEFAULT_WIDTH, MOST_SETS, MinistatError, Set, Style, render, terminal};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};

/// Exit code of every failure: wrong options, a file that cannot be read, data that cannot be used.
const FAILURE: u8 = 2;

/// The whole command, `args` without the program's name: reads the files named, or `stdin` for `-` and for no file at
/// all, and prints to `stdout` and `stderr`. The plot is as wide as the terminal when the process has one.
///
/// Returns the exit code: 0, or 2 for anything that went wrong, told on `stderr`.
pub fn main(
    args: impl IntoIterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> u8 {
    run(args, terminal::plot_width().unwrap_or(DEFAULT_WIDTH), stdin, stdout, stderr)
}

/// [`main`] for a plot of `width` columns wherever the options do not ask for another.
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
            // Nobody is left to tell when the error stream itself fails.
            let _ = write!(stderr, "{failure}");
            FAILURE
        }
    }
}

/// What ends the command early. The texts are the reference program's where scripts may look for them.
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
         \t-C : which column holds the figures, the first one if not given\n\
         \t-d : characters that separate columns, space and tab if not given\n\
         \t-n : only the table: no plot, no comparisons\n\
         \t-q : no names of the sets, no header of the table\n\
         \t-s : a line of its own for each set's bar\n\
         \t-w : columns of the plot, {DEFAULT_WIDTH} or the terminal's width if not given\n"
    )
}

/// The system's words without Rust's error number behind them.
fn reason(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// The command line, understood.
#[derive(Debug)]
struct Request {
    style: Style,
    column: usize,
    delimiters: Vec<u8>,
    files: Vec<OsString>,
}

impl Request {
    /// Options end at the first argument that is none, or at `--`, as POSIX getopt has it.
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

    /// Options behind one dash; the last of them may have its value in the same argument or in the next one.
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
        let complain = |words: &str| Failure::Usage { complaint: words.to_owned() };
        match option {
            b'C' => self.column = column(value).map_err(complain)?,
            b'c' => self.style.confidence = confidence(value).map_err(complain)?,
            b'd' if value.is_empty() => return Err(complain("Can't use empty delimiter string")),
            b'd' => self.delimiters = value.to_vec(),
            _ => self.style.width = Some(width(value).map_err(complain)?),
        }
        Ok(())
    }

    fn answer(&self, stdin: &mut dyn Read) -> Result<String, Failure> {
        Ok(render(&self.sets(stdin)?, &self.style)?)
    }

    /// All files are opened before the first is read: a wrong name is told at once.
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

/// The file of that name, `None` for `-`, which is standard input.
fn open(name: &OsStr) -> Result<Option<File>, Failure> {
    if name == "-" {
        return Ok(None);
    }
    let told = |cause| Failure::Open { name: name.to_string_lossy().into_owned(), cause };
    File::open(name).map(Some).map_err(told)
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
