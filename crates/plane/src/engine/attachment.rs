//! Programs on interfaces, by links of the kernel: a link ends when its descriptor is closed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::programs::ProgramError;
use aya::sys::SyscallError;

use crate::bpf::BpfError;
use crate::port::sys::bpf_call::{self, XdpPlace};

/// How drivers give frames to an XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffers {
    /// Each in one buffer, which limits the MTU to some 3,500 bytes.
    One,
    /// Longer ones in several.
    Several,
}

/// How the program is attached to an interface.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttachMode {
    /// At XDP, where the driver leaves VLAN tags in the frames.
    Plain(XdpPlace, Buffers),
    /// To a driver that tells the tags that it strips.
    ReadsTags(Buffers),
    /// At tcx, to any interface.
    Tcx,
}

impl AttachMode {
    /// The mode for an MTU that is too large for this one.
    pub fn for_large_frames(self) -> Option<AttachMode> {
        match self {
            AttachMode::Plain(place, Buffers::One) => Some(AttachMode::Plain(place, Buffers::Several)),
            AttachMode::ReadsTags(Buffers::One) => Some(AttachMode::ReadsTags(Buffers::Several)),
            AttachMode::Plain(_, Buffers::Several)
            | AttachMode::ReadsTags(Buffers::Several)
            | AttachMode::Tcx => None,
        }
    }
}

/// An interface that the program has to be attached to, and the link if it is.
pub(super) struct WantedLink {
    pub ifindex: u32,
    pub mode: AttachMode,
    pub link: Option<OwnedFd>,
}

impl WantedLink {
    /// Replaces the program, if one is attached.
    pub fn replace(&self, program: &OwnedFd) -> Result<(), BpfError> {
        self.link.as_ref().map_or(Ok(()), |link| replace(link, program, self.ifindex))
    }
}

/// Attaches a program to an interface by the interface's index: aya takes names only, and keeps the links to itself. At tcx
/// it comes after the programs that are there.
pub(super) fn attach(program: &OwnedFd, interface: u32, mode: AttachMode) -> Result<OwnedFd, BpfError> {
    let program = program.as_fd();
    let place = match mode {
        AttachMode::Plain(place, _) => place,
        AttachMode::ReadsTags(_) => XdpPlace::Driver,
        AttachMode::Tcx => {
            let link = bpf_call::attach_at_tcx(program, interface);
            return link.map_err(|error| BpfError::AttachAtTcx { interface, error });
        }
    };
    let link = bpf_call::attach_xdp(program, interface, place);
    let refused = |error| BpfError::Attach { interface, error: Box::new(failed("BPF_LINK_CREATE", error)) };
    link.map_err(refused)
}

/// Replaces the program of a link to this interface.
pub(super) fn replace(link: &OwnedFd, program: &OwnedFd, interface: u32) -> Result<(), BpfError> {
    let replaced = bpf_call::replace(link.as_fd(), program.as_fd());
    replaced.map_err(|error| BpfError::Replace { interface, error })
}

pub(super) fn failed(call: &'static str, io_error: io::Error) -> ProgramError {
    SyscallError { call, io_error }.into()
}
