//! What the kernel refused the classifier.

use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::sys::SyscallError;

use crate::bpf::{BpfError, with_causes};
use crate::port::link::Link;

/// Why frames cannot be told apart in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// A program was refused.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// A map takes no more, or is not what it should be.
    #[error(
        "a map of bpf/classify.c: {0}; it holds 4096 interfaces and VLANs, and 65536 addresses of each family"
    )]
    Map(MapError),
    /// A program is not there.
    #[error("a program of bpf/classify.c: {}", with_causes(&**.0))]
    Program(Box<ProgramError>),
    /// The kernel would forward too.
    #[error(
        "interface {interface}: the kernel cannot be kept from forwarding too: {}; it takes Linux 6.6 or newer (tcx)",
        with_causes(&**error)
    )]
    Tcx {
        /// Its name.
        interface: String,
        /// Why.
        error: Box<ProgramError>,
    },
    /// Another program has the interface.
    #[error(
        "interface {interface} has an XDP program already; `ip link set dev {interface} xdp off`, or the program \
         that attached it, removes it"
    )]
    Occupied {
        /// Its name.
        interface: String,
    },
    /// No XDP program can be attached.
    #[error(
        "interface {interface} takes no XDP program: {}; drivers refuse a large MTU, offloads as LRO, or too few \
         queues, and say which in `dmesg`",
        with_causes(&**error)
    )]
    Xdp {
        /// Its name.
        interface: String,
        /// Why.
        error: Box<ProgramError>,
    },
    /// The kernel is too old for programs that end with their process.
    #[error("interface {interface}: this kernel has no BPF links; Linux 6.6 or newer has")]
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
    #[error("/dev/urandom: {0}; a mark that nobody can guess is needed")]
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

/// Whether the system call failed for that reason.
pub(super) fn is(error: &ProgramError, errno: i32) -> bool {
    matches!(error, ProgramError::SyscallError(SyscallError { io_error, .. }) if io_error.raw_os_error() == Some(errno))
}
