//! Counters of the XDP program, by processor and interface.

use aya::maps::{Map, MapData, PerCpuArray};

use super::config::{XdpConfig, XdpInterface};
use super::error::EngineError;
use super::layout::{COUNTED, REASONS};
use crate::counters::{InterfaceCounters, Traffic};
use crate::program_verdict::XdpReason;

/// Packets by [`XdpReason`].
type ReasonCounts = [u64; REASONS];

/// The counters of the program since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpCounters {
    /// By interface: received and forwarded frames.
    pub interfaces: Vec<InterfaceCounters>,
    /// Frames without an interface first, then by interface.
    reasons: Vec<ReasonCounts>,
}

impl XdpCounters {
    /// Packets that were forwarded.
    pub fn forwarded(&self) -> u64 {
        self.interfaces.iter().map(|interface| interface.sent.packets).sum()
    }

    /// Packets not forwarded for this reason.
    pub fn of(&self, reason: XdpReason) -> u64 {
        self.reasons.iter().map(|reasons| reasons[reason as usize - 1]).sum()
    }

    /// The same for packets that one interface received.
    pub fn of_interface(&self, number: usize, reason: XdpReason) -> u64 {
        self.reasons.get(number + 1).map_or(0, |reasons| reasons[reason as usize - 1])
    }

    /// The counters of one interface, or of none, whose packets were not forwarded as often as `refused` says.
    pub fn of_one(
        interface: Option<u16>,
        traffic: InterfaceCounters,
        refused: impl Fn(XdpReason) -> u64,
    ) -> XdpCounters {
        let place = interface.map_or(0, |number| usize::from(number) + 1);
        let mut interfaces = vec![InterfaceCounters::default(); place];
        interfaces.last_mut().into_iter().for_each(|last| *last = traffic);
        let mut reasons = vec![[0; REASONS]; place + 1];
        XdpReason::ALL.into_iter().for_each(|reason| reasons[place][reason as usize - 1] = refused(reason));
        XdpCounters { interfaces, reasons }
    }

    /// Packets passed to the kernel for any reason.
    pub fn all_passed(&self) -> u64 {
        let passed = XdpReason::ALL.into_iter().filter(|reason| !reason.drops());
        passed.map(|reason| self.of(reason)).sum()
    }

    /// Adds the counters of another processor.
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

/// Received packets and bytes, sent packets and bytes, of all possible interfaces.
type AllTraffic = [[u64; 4]; COUNTED];

/// The maps in which the program counts.
pub(super) struct CounterMaps {
    traffic: PerCpuArray<MapData, AllTraffic>,
    reasons: PerCpuArray<MapData, ReasonCounts>,
    /// The number of interfaces up to the highest one so far.
    interfaces: usize,
}

impl CounterMaps {
    pub fn new(traffic: Map, reasons: Map) -> Result<CounterMaps, EngineError> {
        Ok(CounterMaps { traffic: traffic.try_into()?, reasons: reasons.try_into()?, interfaces: 0 })
    }

    /// Includes the interfaces of this configuration from now on.
    pub fn reads(&mut self, config: &XdpConfig) {
        let count = |ingress: &XdpInterface| usize::from(ingress.number) + 1;
        self.interfaces = config.interfaces.iter().map(count).fold(self.interfaces, usize::max);
    }

    /// Reads the counters of each processor.
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
