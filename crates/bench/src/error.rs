//! Why a subject cannot be made, verified or measured.

use std::io;
use std::path::PathBuf;

use fullview_lab::{ExperimentError, SubjectError};
use fullview_plane::view::ViewError;
use fullview_router::algorithm::AlgorithmError;
use fullview_router::error::BadInput;
use fullview_router::host::config::HostConfigError;
use fullview_table::feed::FeedError;
use fullview_table::feed::synthetic::SyntheticError;
use fullview_table::fib::CompileError;
use fullview_table::nexthop::TooManyNextHops;

#[cfg(feature = "bpf")]
use crate::device_bed::DeviceBedError;
use crate::placement::PlacementError;
#[cfg(feature = "bpf")]
use crate::testbed::TestbedError;
use crate::traffic::load::LoadError;
#[cfg(feature = "bpf")]
use crate::veth::VethError;

/// Why a subject cannot be made, verified or measured. Where another error is the cause, it is the source too, so that
/// the program finds it among the causes.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("{0}")]
    BadInput(#[from] BadInput),
    #[error("{0}")]
    Experiment(#[from] ExperimentError),
    #[error("{0}")]
    Setting(#[from] WrongSetting),
    #[error("the experiment's settings cannot be written as JSON: {0}")]
    Settings(#[source] serde_json::Error),
    #[error("{0}")]
    Feed(#[from] FeedError),
    #[error("{0}")]
    Synthetic(#[from] SyntheticError),
    #[error("{0}")]
    NextHops(#[from] TooManyNextHops),
    #[error("{0}")]
    Algorithm(#[from] AlgorithmError),
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error("{0}")]
    View(#[from] ViewError),
    #[error("{0}")]
    Host(#[from] HostConfigError),
    #[error("{0}")]
    Placement(#[from] PlacementError),
    #[error("a panel needs a member that is measured in this process")]
    NoMembers,
    #[error("load.shape = \"two-cores\": this process may use one core only")]
    OneCoreOnly,
    #[error("{0}")]
    Load(#[from] LoadError),
    #[cfg(feature = "bpf")]
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    #[cfg(feature = "bpf")]
    #[error("{0}")]
    Veth(#[from] VethError),
    #[cfg(feature = "bpf")]
    #[error("{0}")]
    DeviceBed(#[from] DeviceBedError),
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// The text says what came out wrong.
    #[error("{0}")]
    Wrong(String),
    #[error("{algorithm} answers wrong: {mismatch}")]
    WrongAnswer { algorithm: &'static str, mismatch: String },
    #[error("{algorithm}: {reason}")]
    Update { algorithm: &'static str, reason: String },
    #[error("{0}")]
    Trial(#[source] SubjectError),
    #[error("{0} has no samples")]
    NoSamples(&'static str),
}

/// Why a peer cannot be started or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("the files for peers cannot be written: {0}")]
    Files(#[source] io::Error),
    #[error("{}: cannot start the peer: {error}", program.display())]
    Start { program: PathBuf, error: io::Error },
    #[error("{}: {error}", program.display())]
    NotReady { program: PathBuf, error: Box<PeerError> },
    #[error("its first line does not follow peers/README.md: {0}")]
    FirstLine(#[source] serde_json::Error),
    #[error("the peer's pipe: {0}")]
    Pipe(#[from] io::Error),
    #[error("the peer ended; it printed the reason above")]
    Ended,
    #[error("the peer's answer: {0}")]
    Answer(#[source] serde_json::Error),
    #[error("the peer refused: {0}")]
    Refused(String),
}

/// A setting below `[subject]` whose value cannot be used, before its place in the file is known.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", keys.join("."))]
pub struct WrongSetting {
    /// Its keys below `[subject]`.
    pub keys: &'static [&'static str],
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// Refuses the setting with these keys.
pub fn require_setting(
    fits: bool,
    keys: &'static [&'static str],
    message: impl FnOnce() -> String,
) -> Result<(), WrongSetting> {
    if fits { Ok(()) } else { Err(WrongSetting { keys, message: message() }) }
}

/// Refuses input that does not fit.
pub fn require(fits: bool, refusal: impl FnOnce() -> String) -> Result<(), BadInput> {
    if fits { Ok(()) } else { Err(BadInput(refusal())) }
}

/// Fails if what a subject did was wrong.
pub fn check(right: bool, fault: impl FnOnce() -> String) -> Result<(), BenchError> {
    if right { Ok(()) } else { Err(BenchError::Wrong(fault())) }
}
