//! Errors of the classifier.

use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::sys::SyscallError;

use crate::bpf::{BpfError, with_causes};
use crate::port::link::Link;

/// Why the classifier does not work.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The kernel refused a program.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// An access to a map failed, for example because the map is full.
    #[error(
        "a map of bpf/classify.c: {0}; it holds 4096 interfaces and VLANs, and 65536 addresses of each family"
    )]
    Map(MapError),
    /// A map cannot be mapped into this process.
    #[error("map {name} of bpf/classify.c cannot be mapped: {error}")]
    Mapping {
        /// Its name.
        name: &'static str,
        /// The cause.
        error: io::Error,
    },
    /// A program is not loaded.
    #[error("a program of bpf/classify.c: {}", with_causes(&**.0))]
    Program(Box<ProgramError>),
    /// The kernel would forward frames a second time.
    #[error(
        "interface {interface}: the kernel cannot be kept from forwarding too: {}; it takes Linux 6.6 or newer (tcx)",
        with_causes(&**error)
    )]
    Tcx {
        /// Its name.
        interface: String,
        /// The cause.
        error: Box<ProgramError>,
    },
    /// Another XDP program is attached to the interface.
    #[error(
        "interface {interface} has an XDP program already; `ip link set dev {interface} xdp off`, or the program \
         that attached it, removes it"
    )]
    Occupied {
        /// Its name.
        interface: String,
    },
    /// The XDP program cannot be attached.
    #[error(
        "interface {interface} takes no XDP program: {}; drivers refuse a large MTU, offloads such as LRO, or too few \
         queues, and log the reason (`dmesg`)",
        with_causes(&**error)
    )]
    Xdp {
        /// Its name.
        interface: String,
        /// The cause.
        error: Box<ProgramError>,
    },
    /// The kernel has no BPF links, which would detach the program with this process.
    #[error("interface {interface}: this kernel has no BPF links; Linux 6.6 or newer is needed")]
    NoLink {
        /// Its name.
        interface: String,
    },
    /// There is no room for more sockets.
    #[error("interface {interface}: there are more than 1024 queues; use fewer (`ethtool -L`)")]
    TooManySockets {
        /// Its name.
        interface: String,
    },
    /// The system has no random numbers.
    #[error("/dev/urandom: {0}; random bytes are needed to mark frames")]
    Random(io::Error),
}

impl ClassifyError {
    pub(super) fn program(error: ProgramError) -> ClassifyError {
        ClassifyError::Program(Box::new(error))
    }

    pub(super) fn no_link(link: &Link) -> ClassifyError {
        ClassifyError::NoLink { interface: link.name().to_owned() }
    }

    pub(super) fn xdp(link: &Link, error: ProgramError) -> ClassifyError {
        let interface = link.name().to_owned();
        match is(&error, libc::EBUSY) || is(&error, libc::EEXIST) {
            true => ClassifyError::Occupied { interface },
            false => ClassifyError::Xdp { interface, error: Box::new(error) },
        }
    }
}

/// Whether the system call failed with this error number.
pub(super) fn is(error: &ProgramError, errno: i32) -> bool {
    matches!(error, ProgramError::SyscallError(SyscallError { io_error, .. }) if io_error.raw_os_error() == Some(errno))
}
