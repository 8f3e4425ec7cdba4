//! Why the XDP engine does not forward.

use std::io;

use aya::maps::MapError;
use fullview_table::fib::CompileError;

use crate::bpf::BpfError;

/// Why the kernel forwards without the XDP program.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program was refused, or an interface.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The empty tables could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The kernel does not let programs read stripped VLAN tags.
    #[error(
        "interface {ifindex}: programs can read stripped VLAN tags only in Linux 6.8 or newer, with net.core.bpf_jit_harden below 2"
    )]
    CannotReadTags {
        /// Its index in the kernel.
        ifindex: u32,
    },
    /// An access to a map failed.
    #[error("a BPF map: {0}")]
    Map(#[from] MapError),
    /// A descriptor of a program or map could not be copied.
    #[error("a descriptor of a BPF program or map: {0}")]
    Descriptor(#[source] io::Error),
    /// A map could not be mapped into this process.
    #[error("a BPF map cannot be mapped: {0}")]
    Mapping(#[source] io::Error),
    /// Another algorithm serves a table.
    #[error("the XDP engine looks up by {wanted} only; have the {family} table served by it")]
    Algorithm {
        /// The family of the table.
        family: &'static str,
        /// The algorithm that the engine needs.
        wanted: &'static str,
    },
    /// The maps are too small.
    #[error("the XDP engine holds {limit} {what}, and {needed} are needed; the kernel forwards instead")]
    TooLarge {
        /// The kind of items.
        what: &'static str,
        /// The number of items.
        needed: usize,
        /// The number of items that fit.
        limit: usize,
    },
    /// Too many interfaces share a place in the hash table of interfaces.
    #[error("the XDP engine has no place for interface {ifindex}, VLAN {vlan}; let it forward between fewer")]
    Interfaces {
        /// Its index in the kernel.
        ifindex: u32,
        /// Its VLAN.
        vlan: u16,
    },
    /// The number of slots of a group is not a power of two.
    #[error("next hop {hop}: a group has a power of two of slots, 2 at least, not {slots}")]
    Group {
        /// Its index.
        hop: u16,
        /// The number of slots.
        slots: usize,
    },
}
