//! Why the XDP engine does not forward.

use std::io;

use aya::maps::MapError;
use fullview_table::fib::CompileError;

use crate::bpf::BpfError;

/// Why the kernel forwards without the program.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program or an interface.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// No memory for tables without routes.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A map.
    #[error("a BPF map: {0}")]
    Map(#[from] MapError),
    /// A map that this process cannot write.
    #[error("a BPF map cannot be mapped: {0}")]
    Mapping(#[source] io::Error),
    /// A table that another algorithm serves.
    #[error("the XDP engine looks up by {wanted} only; have the {family} table served by it")]
    Algorithm {
        /// Of which family.
        family: &'static str,
        /// The one it knows.
        wanted: &'static str,
    },
    /// More than the maps hold.
    #[error("the XDP engine holds {limit} {what}, and {needed} are needed; the kernel forwards instead")]
    TooLarge {
        /// Of what there is too much.
        what: &'static str,
        /// How much there is.
        needed: usize,
        /// How much fits.
        limit: usize,
    },
    /// Too many interfaces whose numbers are alike.
    #[error("the XDP engine has no place for interface {ifindex}, VLAN {vlan}; let it forward between fewer")]
    Interfaces {
        /// Its index in the kernel.
        ifindex: u32,
        /// Its VLAN.
        vlan: u16,
    },
    /// A group that no mask can choose from.
    #[error("next hop {hop}: a group has a power of two of slots, 2 at least, not {slots}")]
    Group {
        /// Its index.
        hop: u16,
        /// How many there are.
        slots: usize,
    },
}
