//! Failures that end the daemon, or keep it from starting.

use std::io;

use fullview_plane::port::PortError;
#[cfg(feature = "bpf")]
use fullview_plane::{
    engine::EngineError,
    port::{classify::ClassifyError, reinject::ReinjectError},
};

use crate::error::BadInput;
use crate::fence::FenceError;
use crate::filter::FilterError;
use crate::netlink::socket::SocketError;
use crate::takeover::TakeoverError;

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The host or the options do not allow what was asked for.
    #[error("{0}")]
    BadInput(#[from] BadInput),
    #[error("{0}")]
    Filter(#[from] FilterError),
    #[error("{0}")]
    Fence(#[from] FenceError),
    #[error("{0}")]
    Port(#[from] PortError),
    /// A port failed to open, and another kind of port would work.
    #[error("{advice}")]
    OpenPort { advice: String, source: Box<DaemonError> },
    #[error("{doing}")]
    Netlink { doing: &'static str, source: SocketError },
    #[error("{doing}")]
    System { doing: &'static str, source: io::Error },
    #[cfg(feature = "bpf")]
    #[error("the program in the kernel")]
    Engine(#[source] EngineError),
    #[cfg(feature = "bpf")]
    #[error("reading what the program in the kernel counted")]
    ReadCounters(#[source] EngineError),
    #[cfg(feature = "bpf")]
    #[error("{0}")]
    Classify(#[from] ClassifyError),
    #[cfg(feature = "bpf")]
    #[error("the programs that classify frames cannot be loaded into the kernel")]
    LoadClassifier(#[source] ClassifyError),
    #[cfg(feature = "bpf")]
    #[error("{0}")]
    Inject(#[from] ReinjectError),
    #[error("{0}")]
    Takeover(#[from] TakeoverError),
    #[error("a worker panicked; this is a bug")]
    WorkerPanicked,
    #[error("all interfaces are gone: the router has no port left")]
    NoPortLeft,
}

/// Makes a [`DaemonError::System`] of an error of the system.
pub fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> DaemonError {
    move |source| DaemonError::System { doing, source: source.into() }
}

/// Makes a [`DaemonError::Netlink`] of an error of a netlink socket.
pub fn netlink(doing: &'static str) -> impl FnOnce(SocketError) -> DaemonError {
    move |source| DaemonError::Netlink { doing, source }
}
