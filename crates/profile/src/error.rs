//! Why there is no profile.

use std::io;
use std::path::PathBuf;

/// A failure of perf, or of what is made from its samples.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// perf cannot be started.
    #[error("cannot run perf: {0}; on Debian, `apt-get install linux-perf` installs it")]
    NoPerf(#[source] io::Error),
    /// setpriv cannot be started, by which perf ends with this process.
    #[error("cannot run setpriv: {0}; on Debian, `apt-get install util-linux` installs it")]
    NoSetpriv(#[source] io::Error),
    /// perf ended or refused.
    #[error("perf {command} failed: {said}{}", advice(.said))]
    Perf {
        /// perf's command, as `record`.
        command: &'static str,
        /// The end of its messages.
        said: String,
    },
    /// perf does not answer.
    #[error("perf did not answer `{0}` within ten seconds")]
    NoAnswer(&'static str),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program's own symbols cannot be read.
    #[error("the symbols of {} cannot be read: {said}", path.display())]
    Symbols {
        /// The program.
        path: PathBuf,
        /// What is wrong.
        said: String,
    },
    /// A line of perf's text has another form.
    #[error("line {line} of what `perf script` printed is not a frame: {text:?}")]
    Script {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// No sample fell into the work.
    #[error("no sample was taken while the work ran; is it shorter than {0} s?")]
    NoSamples(f64),
    /// The graph cannot be drawn.
    #[error("the flame graph cannot be drawn: {0}")]
    Graph(#[source] io::Error),
}

impl ProfileError {
    /// An error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ProfileError {
        let path = path.into();
        move |source| ProfileError::File { path, source }
    }
}

fn advice(said: &str) -> &'static str {
    if said.contains("perf_event_paranoid") {
        "; run as root, or `sysctl kernel.perf_event_paranoid=2` for the user's part of the time"
    } else {
        ""
    }
}
