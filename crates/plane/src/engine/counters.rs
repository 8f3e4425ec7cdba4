//! What the program counts, by processor and interface.

use std::fmt::{self, Display};

use aya::maps::{Map, MapData, PerCpuArray};

use super::EngineError;
use super::layout::COUNTED;
use super::plan::{Ingress, Plan};
use crate::counters::{InterfaceCounters, Traffic};

/// Why a packet was not forwarded, in the order of `enum reason` in `bpf/forward.c`. All but those that fail a source
/// check are passed to the kernel.
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
    /// The interface does not forward this family.
    NotForwarding,
    /// The source is none that the interface's packets may come from; dropped.
    SourceCheck,
}

impl Reason {
    /// All of them, in the order of their counters.
    pub const ALL: [Reason; 16] = [
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
        Reason::SourceCheck,
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
            Reason::SourceCheck => "source_check",
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets by [`Reason`].
type Reasons = [u64; Reason::ALL.len()];

/// What the program has counted since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By interface, of frames that came in and those that were forwarded.
    pub interfaces: Vec<InterfaceCounters>,
    /// Frames of no interface first, then by interface.
    reasons: Vec<Reasons>,
}

impl Counters {
    /// Packets that were forwarded.
    pub fn forwarded(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.sent.packets).sum()
    }

    /// Packets that were not forwarded for this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.reasons.iter().map(|reasons| reasons[reason as usize - 1]).sum()
    }

    /// The same, of those that came in by one interface.
    pub fn of_interface(&self, number: usize, reason: Reason) -> u64 {
        self.reasons.get(number + 1).map_or(0, |reasons| reasons[reason as usize - 1])
    }

    /// Packets passed to the kernel for any reason.
    pub fn all_passed(&self) -> u64 {
        let passed = Reason::ALL.into_iter().filter(|reason| *reason != Reason::SourceCheck);
        passed.map(|reason| self.of(reason)).sum()
    }

    /// Adds what others have counted.
    pub fn add(&mut self, other: &Counters) {
        let (interfaces, reasons) = (other.interfaces.len(), other.reasons.len());
        self.interfaces.resize(interfaces.max(self.interfaces.len()), InterfaceCounters::default());
        self.reasons.resize(reasons.max(self.reasons.len()), Reasons::default());
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
type Traffics = [[u64; 4]; COUNTED];

/// Where the program counts.
pub(super) struct Counted {
    traffic: PerCpuArray<MapData, Traffics>,
    reasons: PerCpuArray<MapData, Reasons>,
    /// How many interfaces there have been.
    interfaces: usize,
}

impl Counted {
    pub fn new(traffic: Map, reasons: Map) -> Result<Counted, EngineError> {
        Ok(Counted { traffic: traffic.try_into()?, reasons: reasons.try_into()?, interfaces: 0 })
    }

    /// Reads the counters of this plan's interfaces too from now on.
    pub fn reads(&mut self, plan: &Plan) {
        let count = |ingress: &Ingress| usize::from(ingress.number) + 1;
        self.interfaces = plan.ingress.iter().map(count).fold(self.interfaces, usize::max);
    }

    /// By processor.
    pub fn read(&self) -> Result<Vec<Counters>, EngineError> {
        let traffic = self.traffic.get(&0, 0)?;
        let mut counters: Vec<Counters> = traffic.iter().map(|all| self.of_processor(all)).collect();
        for number in 0..=self.interfaces as u32 {
            let reasons = self.reasons.get(&number, 0)?;
            counters.iter_mut().zip(reasons.iter()).for_each(|(all, reasons)| all.reasons.push(*reasons));
        }
        Ok(counters)
    }

    fn of_processor(&self, all: &Traffics) -> Counters {
        let counted = all.iter().skip(1).take(self.interfaces);
        let interface = |[packets, bytes, sent_packets, sent_bytes]: &[u64; 4]| InterfaceCounters {
            received: Traffic { packets: *packets, bytes: *bytes },
            sent: Traffic { packets: *sent_packets, bytes: *sent_bytes },
            overruns: 0,
        };
        Counters { interfaces: counted.map(interface).collect(), reasons: Vec::new() }
    }
}
