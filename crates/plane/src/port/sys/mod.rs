//! Sockets, mappings and rings shared with the kernel: all `unsafe` code of this crate, behind safe interfaces.
//!
//! This code makes no decisions. It checks values from the kernel against the bounds of the mapping before it uses them,
//! and each type owns what it points to.
#![allow(unsafe_code)]

#[cfg(feature = "bpf")]
pub mod bpf_call;
mod ethtool;
mod kernel_slots;
mod packet_ring;
mod send;
mod shared_mapping;
#[cfg(feature = "bpf")]
mod shared_words;
mod socket;
pub(super) mod tun;
mod xdp_ring;

pub(super) use ethtool::{driver, merges_frames, receive_queues, runs_gro, strips_tags};
pub(super) use kernel_slots::{KernelSlots, SlotMemory};
pub(super) use packet_ring::{FilledFrame, PacketRing, RingSize, VIRTIO_HEADER};
pub(super) use send::SendBatch;
pub(super) use shared_mapping::SharedMapping;
#[cfg(feature = "bpf")]
pub use shared_words::SharedWords;
pub use socket::interface_name;
pub(super) use socket::{Socket, interface_index};
pub(super) use xdp_ring::XdpRings;
