//! Why another build cannot take turns.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::protocol::PROTOCOL;
use crate::settings::Kind;

/// Why a program cannot serve slices, or stopped serving them.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    #[error("{}: cannot be started: {error}", program.display())]
    Start { program: PathBuf, error: io::Error },
    #[error("{}: no build of fullview: {found}; give a commit of this repository, or the path of a program that `cargo build --release` made", program.display())]
    NotFullview { program: PathBuf, found: String },
    #[error("{}: this build is older than the command serve-slices, by which two builds take turns: it cannot be compared; \
             choose a later commit, or put the old code beside the new one as two variants of one build", program.display())]
    TooOld { program: PathBuf },
    #[error("{}: this build serves version {served} of the protocol, and this program asks by version {PROTOCOL}: compare builds that are nearer to each other", program.display())]
    OtherProtocol { program: PathBuf, served: u32 },
    #[error("{}: this build is older than the first that serves slices of kind \"{kind}\": choose a later commit, or measure in a \
             checkout of each commit without --against, and compare the two results folders by `fullview compare`", program.display())]
    OlderThanKind { program: PathBuf, kind: Kind },
    #[error("{}: the program was replaced by another build while the campaign ran: begin again", program.display())]
    Replaced { program: PathBuf },
    #[error("{}: does not answer for {} s", program.display(), after.as_secs())]
    Silent { program: PathBuf, after: Duration },
    #[error("{}: ended before it answered{log}", program.display())]
    Ended { program: PathBuf, log: String },
    #[error("{}: the pipe to it: {error}", program.display())]
    Pipe { program: PathBuf, error: io::Error },
    #[error("{}: its answer is not one of the protocol: {found}", program.display())]
    Answer { program: PathBuf, found: String },
    #[error("{}: {message}", program.display())]
    Failed { program: PathBuf, message: String },
}

impl ServedError {
    /// Whether the user gave a program that cannot be used.
    pub fn is_bad_input(&self) -> bool {
        use ServedError::{NotFullview, OlderThanKind, OtherProtocol, Start, TooOld};
        matches!(
            self,
            Start { .. } | NotFullview { .. } | TooOld { .. } | OtherProtocol { .. } | OlderThanKind { .. }
        )
    }
}
