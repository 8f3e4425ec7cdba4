//! What the program counts, by processor and interface.

use std::fmt::{self, Display};

use aya::maps::{Map, MapData, PerCpuArray};

use super::config::{XdpConfig, XdpInterface};
use super::error::EngineError;
use super::layout::COUNTED;
use crate::counters::{InterfaceCounters, Traffic};

/// Why a packet was not forwarded, in the order of `enum reason` in `bpf/forward.c`. All but those that fail a source
/// check are passed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum XdpReason {
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
    /// The interface does not forward this family.
    NotForwarding,
    /// The source is none that the interface's packets may come from; dropped.
    SourceCheck,
}

impl XdpReason {
    /// All of them, in the order of their counters.
    pub const ALL: [XdpReason; 16] = [
        XdpReason::TooShort,
        XdpReason::NoInterface,
        XdpReason::OtherStation,
        XdpReason::NotIp,
        XdpReason::Header,
        XdpReason::Checksum,
        XdpReason::SpecialAddress,
        XdpReason::TtlExpired,
        XdpReason::NoRoute,
        XdpReason::Local,
        XdpReason::NoNeighbor,
        XdpReason::Discarded,
        XdpReason::TooBig,
        XdpReason::NoHeadroom,
        XdpReason::NotForwarding,
        XdpReason::SourceCheck,
    ];

    /// The name telemetry uses.
    pub const fn name(self) -> &'static str {
        match self {
            XdpReason::TooShort => "too_short",
            XdpReason::NoInterface => "no_interface",
            XdpReason::OtherStation => "other_station",
            XdpReason::NotIp => "not_ip",
            XdpReason::Header => "header",
            XdpReason::Checksum => "checksum",
            XdpReason::SpecialAddress => "special_address",
            XdpReason::TtlExpired => "ttl_expired",
            XdpReason::NoRoute => "no_route",
            XdpReason::Local => "local",
            XdpReason::NoNeighbor => "no_neighbor",
            XdpReason::Discarded => "discarded",
            XdpReason::TooBig => "too_big",
            XdpReason::NoHeadroom => "no_headroom",
            XdpReason::NotForwarding => "not_forwarding",
            XdpReason::SourceCheck => "source_check",
        }
    }
}

impl Display for XdpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets by [`XdpReason`].
type ReasonCounts = [u64; XdpReason::ALL.len()];

/// What the program has counted since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// By interface, of frames that came in and those that were forwarded.
    pub interfaces: Vec<InterfaceCounters>,
    /// Frames of no interface first, then by interface.
    reasons: Vec<ReasonCounts>,
}

impl XdpCounters {
    /// Packets that were forwarded.
    pub fn forwarded(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.sent.packets).sum()
    }

    /// Packets that were not forwarded for this reason.
    pub fn of(&self, reason: XdpReason) -> u64 {
        self.reasons.iter().map(|reasons| reasons[reason as usize - 1]).sum()
    }

    /// The same, of those that came in by one interface.
    pub fn of_interface(&self, number: usize, reason: XdpReason) -> u64 {
        self.reasons.get(number + 1).map_or(0, |reasons| reasons[reason as usize - 1])
    }

    /// Packets passed to the kernel for any reason.
    pub fn all_passed(&self) -> u64 {
        let passed = XdpReason::ALL.into_iter().filter(|reason| *reason != XdpReason::SourceCheck);
        passed.map(|reason| self.of(reason)).sum()
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &XdpCounters) {
        let (interfaces, reasons) = (other.interfaces.len(), other.reasons.len());
        self.interfaces.resize(interfaces.max(self.interfaces.len()), InterfaceCounters::default());
        self.reasons.resize(reasons.max(self.reasons.len()), ReasonCounts::default());
        for (mine, theirs) in self.interfaces.iter_mut().zip(&other.interfaces) {
            mine.received.add(theirs.received);
            mine.sent.add(theirs.sent);
        }
        for (mine, theirs) in self.reasons.iter_mut().zip(&other.reasons) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

/// Packets and bytes received, packets and bytes sent, of every interface there can be.
type AllTraffic = [[u64; 4]; COUNTED];

/// Where the program counts.
pub(super) struct CounterMaps {
    traffic: PerCpuArray<MapData, AllTraffic>,
    reasons: PerCpuArray<MapData, ReasonCounts>,
    /// How many interfaces there have been.
    interfaces: usize,
}

impl CounterMaps {
    pub fn new(traffic: Map, reasons: Map) -> Result<CounterMaps, EngineError> {
        Ok(CounterMaps { traffic: traffic.try_into()?, reasons: reasons.try_into()?, interfaces: 0 })
    }

    /// Reads the counters of this plan's interfaces too from now on.
    pub fn reads(&mut self, plan: &XdpConfig) {
        let count = |ingress: &XdpInterface| usize::from(ingress.number) + 1;
        self.interfaces = plan.interfaces.iter().map(count).fold(self.interfaces, usize::max);
    }

    /// By processor.
    pub fn read(&self) -> Result<Vec<XdpCounters>, EngineError> {
        let traffic = self.traffic.get(&0, 0)?;
        let mut counters: Vec<XdpCounters> = traffic.iter().map(|all| self.of_processor(all)).collect();
        for number in 0..=self.interfaces as u32 {
            let reasons = self.reasons.get(&number, 0)?;
            counters.iter_mut().zip(reasons.iter()).for_each(|(all, reasons)| all.reasons.push(*reasons));
        }
        Ok(counters)
    }

    fn of_processor(&self, all: &AllTraffic) -> XdpCounters {
        let counted = all.iter().skip(1).take(self.interfaces);
        let interface = |[packets, bytes, sent_packets, sent_bytes]: &[u64; 4]| InterfaceCounters {
            received: Traffic { packets: *packets, bytes: *bytes },
            sent: Traffic { packets: *sent_packets, bytes: *sent_bytes },
            overruns: 0,
        };
        XdpCounters { interfaces: counted.map(interface).collect(), reasons: Vec::new() }
    }
}
