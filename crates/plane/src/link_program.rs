//! The program that notes failed links within the kernel, before the kernel leaves them (`bpf/link_failures.h`).

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

use aya::programs::BtfTracePoint;
use aya::{Btf, BtfError};

use crate::bpf::{BpfError, LoadedObject};

/// The program, and the kernel's tracepoint at which it runs.
const NOTES: &str = "note_failed_link";
const EMPTIES_QUEUE: &str = "qdisc_reset";

/// Why failed links are not noted within the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LinkProgramError {
    /// The program was refused.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The types of the running kernel could not be read.
    #[error("the types of this kernel (BTF): {0}")]
    Types(#[source] BtfError),
    /// The network namespace of this thread could not be found out.
    #[error("the network namespace of this thread: {0}")]
    Namespace(#[source] io::Error),
}

/// Attaches the program of an object. Returns this thread's network namespace, whose links it is to note, by the number with which
/// the kernel tells it from others.
///
/// # Errors
/// Kernels without type information cannot.
pub(crate) fn attach(loaded: &mut LoadedObject) -> Result<u32, LinkProgramError> {
    let types = Btf::from_sys_fs().map_err(LinkProgramError::Types)?;
    loaded.program(NOTES, |program: &mut BtfTracePoint| {
        if program.fd().is_err() {
            program.load(EMPTIES_QUEUE, &types)?;
        }
        program.attach().map(drop)
    })?;
    own_namespace().map_err(LinkProgramError::Namespace)
}

fn own_namespace() -> io::Result<u32> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino() as u32)
}
