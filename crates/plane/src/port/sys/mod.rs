//! Sockets, mappings and rings shared with the kernel: all `unsafe` of this crate, behind safe interfaces.
//!
//! Nothing here decides anything: what the kernel writes is checked against the bounds of its mapping before it is
//! used, and each type owns what it points to.
#![allow(unsafe_code)]

mod custody;
mod ethtool;
mod map;
mod packet_ring;
mod send;
mod socket;
pub(super) mod tun;
#[cfg(feature = "bpf")]
mod words;
mod xdp_ring;

pub(super) use custody::{Custody, Memory};
pub(super) use ethtool::{receive_queues, strips_tags};
pub(super) use map::Map;
pub(super) use packet_ring::{Filled, PacketRing, RingSize};
pub(super) use send::SendBatch;
pub(super) use socket::{Socket, interface_index};
#[cfg(feature = "bpf")]
pub use words::SharedWords;
pub(super) use xdp_ring::XdpRings;
