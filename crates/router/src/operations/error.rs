//! Why the services around a router could not be started.

use std::io;
use std::path::PathBuf;

use fullview_plane::trace::capture::CaptureError;
use nix::errno::Errno;

use crate::service::ListenError;

#[derive(Debug, thiserror::Error)]
pub enum OperationsError {
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("a socket cannot be copied")]
    Share(#[source] io::Error),
    #[error("{}", path.display())]
    CreateFile { path: PathBuf, source: io::Error },
    #[error("{}", path.display())]
    Capture { path: PathBuf, source: CaptureError },
    #[error("dropped packets cannot be watched: there are too many watches")]
    TooManyWatches,
    #[error("a thread cannot be started")]
    Thread(#[source] io::Error),
    #[error("SIGHUP cannot be waited for")]
    Hangup(#[source] Errno),
}
