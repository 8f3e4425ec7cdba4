//! Programs at tcx ingress.

use std::io;
use std::os::fd::AsFd;

use aya::programs::SchedClassifier;

use crate::bpf::{BpfError, ProgramAttachment};
use crate::port::sys::bpf_call;

/// Attaches a program to an interface after the programs that are there, by the interface's index: aya takes names only.
pub fn attach(program: &SchedClassifier, interface: u32) -> Result<ProgramAttachment, BpfError> {
    let refused = |error| BpfError::AttachAtTcx { interface, error };
    let program = program.fd().map_err(|error| refused(io::Error::other(error)))?;
    bpf_call::attach_at_tcx(program.as_fd(), interface).map(ProgramAttachment::Link).map_err(refused)
}
