//! Counters of a worker: plain integers that only the worker writes. The loop uses no atomics; readers add up the counters
//! of all workers.

use crate::verdict::{Punt, Reason, Verdict};

/// Packets, and the bytes of their frames without the FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Counts one frame.
    #[inline(always)]
    pub fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Adds another count.
    #[inline(always)]
    pub fn add(&mut self, other: Traffic) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The traffic of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Received frames.
    pub received: Traffic,
    /// Sent frames.
    pub sent: Traffic,
    /// Frames that the port's receive ring had no room for; nothing else is known about them.
    pub overruns: u64,
}

/// All counters of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// By interface number.
    pub interfaces: Vec<InterfaceCounters>,
    /// By [`Reason::index`].
    pub drops: [u64; Reason::COUNT],
    /// The same by interface number: the ingress interface, or the egress interface if it had no room, went down, or dropped
    /// the packet.
    pub interface_drops: Vec<[u64; Reason::COUNT]>,
    /// By [`Punt::index`].
    pub punts: [u64; Punt::COUNT],
}

impl Counters {
    /// Zeros for this number of interfaces.
    pub fn new(interfaces: usize) -> Counters {
        let (drops, punts) = ([0; Reason::COUNT], [0; Punt::COUNT]);
        let interface_drops = vec![drops; interfaces];
        Counters { interfaces: vec![InterfaceCounters::default(); interfaces], drops, interface_drops, punts }
    }

    /// Adds to the received traffic of an interface, if it exists.
    #[inline]
    pub(crate) fn add_received(&mut self, number: u16, traffic: Traffic) {
        if let Some(interface) = self.interfaces.get_mut(usize::from(number)) {
            interface.received.add(traffic);
        }
    }

    /// Adds to the sent traffic of an interface, if it exists.
    #[inline]
    pub(crate) fn add_sent(&mut self, number: u16, traffic: Traffic) {
        if let Some(interface) = self.interfaces.get_mut(usize::from(number)) {
            interface.sent.add(traffic);
        }
    }

    /// Subtracts a frame that was counted as sent and then rejected by the port.
    pub(crate) fn subtract_sent(&mut self, number: u16, bytes: usize) {
        if let Some(interface) = self.interfaces.get_mut(usize::from(number)) {
            let sent = &mut interface.sent;
            // A packet that waited may have been counted before the counters were last taken.
            sent.packets = sent.packets.saturating_sub(1);
            sent.bytes = sent.bytes.saturating_sub(bytes as u64);
        }
    }

    /// Adds overruns of the port of an interface, if it exists.
    pub(crate) fn add_overruns(&mut self, number: u16, overruns: u64) {
        if let Some(interface) = self.interfaces.get_mut(usize::from(number)) {
            interface.overruns += overruns;
        }
    }

    /// Counts the verdict of a rejected packet, and the interface.
    pub(crate) fn count_rejected(&mut self, interface: u16, verdict: Verdict) {
        match verdict {
            Verdict::Forward => {}
            Verdict::Drop(reason) => self.count_dropped(interface, reason),
            Verdict::Reject(_) => self.count_dropped(interface, Reason::FilterRule),
            Verdict::Punt(punt) => self.punts[punt.index()] += 1,
        }
    }

    fn count_dropped(&mut self, interface: u16, reason: Reason) {
        self.add_dropped(interface, reason, 1);
    }

    /// Adds dropped packets of an interface.
    pub(crate) fn add_dropped(&mut self, interface: u16, reason: Reason, packets: u64) {
        self.drops[reason.index()] += packets;
        let there = self.interface_drops.get_mut(usize::from(interface));
        there.into_iter().for_each(|drops| drops[reason.index()] += packets);
    }

    /// Adds the counters of another worker.
    pub fn add(&mut self, other: &Counters) {
        let interfaces = self.interfaces.len().max(other.interfaces.len());
        self.interfaces.resize(interfaces, InterfaceCounters::default());
        for (mine, theirs) in self.interfaces.iter_mut().zip(&other.interfaces) {
            mine.received.add(theirs.received);
            mine.sent.add(theirs.sent);
            mine.overruns += theirs.overruns;
        }
        self.interface_drops.resize(interfaces, [0; Reason::COUNT]);
        let drops = self.interface_drops.iter_mut().zip(&other.interface_drops);
        drops.for_each(|(mine, theirs)| add_each(mine, theirs));
        add_each(&mut self.drops, &other.drops);
        add_each(&mut self.punts, &other.punts);
    }

    /// The traffic that all interfaces received.
    pub fn received(&self) -> Traffic {
        self.sum(|interface| interface.received)
    }

    /// The traffic that all interfaces sent.
    pub fn sent(&self) -> Traffic {
        self.sum(|interface| interface.sent)
    }

    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Packets punted for any reason.
    pub fn punted(&self) -> u64 {
        self.punts.iter().sum()
    }

    /// The drop reasons with a count above zero.
    pub fn drop_reasons(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let counted = Reason::ALL.iter().copied().zip(self.drops);
        counted.filter(|(_, count)| *count > 0)
    }

    fn sum(&self, side: impl Fn(&InterfaceCounters) -> Traffic) -> Traffic {
        self.interfaces.iter().fold(Traffic::default(), |mut total, interface| {
            total.add(side(interface));
            total
        })
    }
}

fn add_each(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up() {
        let mut first = Counters::new(1);
        first.interfaces[0].received.count(60);
        first.drops[Reason::NoRoute.index()] = 2;
        let mut second = Counters::new(2);
        second.interfaces[1].sent.count(62);
        second.drops[Reason::NoRoute.index()] = 1;
        second.count_rejected(1, Verdict::Punt(Punt::Arp));
        second.count_rejected(1, Verdict::Drop(Reason::NoRoute));
        second.count_rejected(9, Verdict::Drop(Reason::NoRoute));
        first.add(&second);
        assert_eq!(first.received(), Traffic { packets: 1, bytes: 60 });
        assert_eq!(first.sent(), Traffic { packets: 1, bytes: 62 });
        assert_eq!((first.dropped(), first.punted()), (5, 1));
        let there = |interface: usize| first.interface_drops[interface][Reason::NoRoute.index()];
        assert_eq!([there(0), there(1)], [0, 1], "one packet names an interface that does not exist");
        assert_eq!(first.drop_reasons().collect::<Vec<_>>(), [(Reason::NoRoute, 5)]);
    }
}
