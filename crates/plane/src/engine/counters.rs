//! What the program counts, by processor; added up here.

use std::fmt::{self, Display};

use aya::maps::{MapData, PerCpuArray};

use super::EngineError;

/// Why a packet was passed to the kernel, in the order of `enum reason` in `bpf/forward.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The frame ends before its headers do.
    TooShort = 1,
    /// No interface takes frames of this device and VLAN.
    NoInterface,
    /// To another station, or to a group of stations.
    OtherStation,
    /// Neither IPv4 nor IPv6, such as ARP.
    NotIp,
    /// Another version, IPv4 options, or lengths that cannot be.
    Header,
    /// The IPv4 header is damaged.
    Checksum,
    /// From or to an address that is not forwarded like others: loopback, link-local, groups.
    SpecialAddress,
    /// TTL or hop limit used up.
    TtlExpired,
    /// No route.
    NoRoute,
    /// To an address of this host.
    Local,
    /// The neighbour's address is not known, or its link is down.
    NoNeighbor,
    /// The route says that such packets are dropped.
    Discarded,
    /// Longer than the link takes.
    TooBig,
    /// The driver left no room for a VLAN tag.
    NoHeadroom,
    /// The interface does not forward this family, or not by the main table, or its sources are checked.
    NotForwarding,
}

impl Reason {
    /// All of them, in the order of their counters.
    pub const ALL: [Reason; 15] = [
        Reason::TooShort,
        Reason::NoInterface,
        Reason::OtherStation,
        Reason::NotIp,
        Reason::Header,
        Reason::Checksum,
        Reason::SpecialAddress,
        Reason::TtlExpired,
        Reason::NoRoute,
        Reason::Local,
        Reason::NoNeighbor,
        Reason::Discarded,
        Reason::TooBig,
        Reason::NoHeadroom,
        Reason::NotForwarding,
    ];

    /// The name telemetry uses.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::TooShort => "too_short",
            Reason::NoInterface => "no_interface",
            Reason::OtherStation => "other_station",
            Reason::NotIp => "not_ip",
            Reason::Header => "header",
            Reason::Checksum => "checksum",
            Reason::SpecialAddress => "special_address",
            Reason::TtlExpired => "ttl_expired",
            Reason::NoRoute => "no_route",
            Reason::Local => "local",
            Reason::NoNeighbor => "no_neighbor",
            Reason::Discarded => "discarded",
            Reason::TooBig => "too_big",
            Reason::NoHeadroom => "no_headroom",
            Reason::NotForwarding => "not_forwarding",
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the program has counted since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were forwarded.
    pub forwarded: u64,
    passed: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Packets passed to the kernel for this reason.
    pub fn passed(&self, reason: Reason) -> u64 {
        self.passed[reason as usize - 1]
    }

    /// Packets passed to the kernel for any reason.
    pub fn all_passed(&self) -> u64 {
        self.passed.iter().sum()
    }
}

/// By reason, the forwarded ones first.
pub(super) type Counted = PerCpuArray<MapData, [u64; Reason::ALL.len() + 1]>;

pub(super) fn read(counted: &Counted) -> Result<Counters, EngineError> {
    let mut counters = Counters::default();
    for processor in counted.get(&0, 0)?.iter() {
        let [forwarded, passed @ ..] = processor;
        counters.forwarded += forwarded;
        counters.passed.iter_mut().zip(passed).for_each(|(sum, count)| *sum += count);
    }
    Ok(counters)
}
