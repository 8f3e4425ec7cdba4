//! A loop over packets, and the hash that it gets.

use super::super::ends::{EndParts, WireEnds};
use super::super::ip_start::IpStart;

/// A loop over packets.
pub trait FlowLoop {
    /// What it returns.
    type Output;

    /// Runs the loop. To be inlined always, as what is not inlined is compiled for any processor.
    fn run(self, hasher: impl WireHasher) -> Self::Output;
}

/// Reads what identifies a flow, and hashes it with secret keys. Hashers of two instruction sets differ.
pub trait WireHasher: Copy + sealed::Sealed {
    /// The hash of two words.
    fn of_two(self, keys: &[u64; 4], words: [u64; 2]) -> u64;

    /// The hash of four words and another one.
    fn of_five(self, keys: &[u64; 4], words: [u64; 4], last: u64) -> u64;

    /// The addresses of an IPv4 packet without options, what else identifies its flow, and the hash of both without the interface,
    /// from the bytes between the hop count and the end of both ports.
    fn inet(self, keys: &[u64; 4], bytes: [u8; 16], interface: u16) -> (u64, WireEnds, u64);

    /// What identifies the flow of an IPv6 packet beside its addresses, and the hash of both without the interface.
    fn inet6(self, keys: &[u64; 4], addresses: [u8; 32], ends: EndParts) -> (WireEnds, u64);

    /// As [`Self::inet`] for four packets, if each is a plain one and this reads four at once. `packet` is added to each length.
    #[inline(always)]
    fn four_inet(
        self,
        _keys: &[u64; 4],
        _starts: [&IpStart; 4],
        _interfaces: [u16; 4],
        _packet: u64,
    ) -> Option<FourInet> {
        None
    }

    /// As [`Self::inet6`] for four packets, if each is a plain one and this reads four at once. `packet` is added to each length.
    #[inline(always)]
    fn four_inet6(
        self,
        _keys: &[u64; 4],
        _starts: [&IpStart; 4],
        _interfaces: [u16; 4],
        _packet: u64,
    ) -> Option<FourInet6> {
        None
    }
}

/// What is read from four IPv4 headers.
#[derive(Clone, Copy)]
pub struct FourInet {
    /// Of each packet: the addresses, and what else identifies its flow.
    pub flows: [[u64; 2]; 4],
    /// Of each packet: the hash of its flow, and its length.
    pub counted: [[u64; 2]; 4],
}

/// What is read from four IPv6 headers.
#[derive(Clone, Copy)]
pub struct FourInet6 {
    /// Of each packet: what identifies its flow beside the addresses.
    pub ends: [u64; 4],
    /// Of each packet: the hash of its flow, and its length.
    pub counted: [[u64; 2]; 4],
}

pub(super) mod sealed {
    pub trait Sealed {}
}
