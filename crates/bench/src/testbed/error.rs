//! Why a test bed cannot be made or run.

use std::io;
use std::path::PathBuf;

use fullview_plane::bpf::BpfError;
use fullview_plane::engine::EngineError;

/// Why a test bed cannot be made or run.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A command that makes the test bed failed.
    #[error("{program} {arguments}: {error}; the test bed needs root, iproute2 and ethtool")]
    Command {
        program: &'static str,
        arguments: String,
        /// Its standard error.
        error: String,
    },
    /// A namespace that cannot be entered.
    #[error("network namespace {name}: {error}; the test bed needs root")]
    Enter { name: String, error: io::Error },
    /// The records of what was made.
    #[error("{}: {error}; it records the namespaces of test beds, for `fullview testbed clean`", path.display())]
    Record { path: PathBuf, error: io::Error },
    /// A device that is not there.
    #[error("device {name}: {error}")]
    Device { name: String, error: io::Error },
    /// A setting of the kernel.
    #[error("{path}: {error}")]
    Setting { path: &'static str, error: io::Error },
    /// A program in the kernel.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The forwarder under test.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A map of the test bed.
    #[error("a BPF map: {0}")]
    Map(#[from] aya::maps::MapError),
    /// A map that this process cannot write.
    #[error("a BPF map cannot be mapped: {0}")]
    Mapping(#[source] io::Error),
    /// More forwarders than frames can name.
    #[error("the test bed has room for {0} forwarders at a time: compare fewer variants")]
    TooMany(usize),
    /// The generator.
    #[error("no live frames: {0}; this needs Linux 5.18 or newer")]
    Generate(#[source] Box<aya::programs::ProgramError>),
}
