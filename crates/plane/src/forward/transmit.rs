//! Last stage: packets go out, or back.
//!
//! Where consecutive packets leave alike, one count and one move serve a run of them. Where next hops alternate, a run is
//! one packet or two, and the processor mispredicts where it ends, in three loops: then packets go out one by one, by the
//! same instructions wherever they go.

use std::vec::Drain;

use super::{Egress, Stages};
use crate::burst::{Burst, Packet};
use crate::counters::Traffic;
use crate::verdict::{Reason, Verdict};

/// A run of fewer packets costs more than they would one by one.
const SHORT_RUN: usize = 8;

impl Stages {
    /// Packets with a way to go are sent on it; the others, and those that find it full, go back.
    #[inline(always)]
    pub(super) fn emit<'a>(
        &mut self,
        mut packets: Drain<'_, Packet<'a>>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        while let Some(first) = packets.as_slice().first() {
            let (port, interface, before) = (first.port, first.interface, rejected.len());
            let (count, traffic) = run(packets.as_slice());
            if count < SHORT_RUN.min(packets.len()) {
                return self.emit_each(packets, egress, rejected);
            }
            self.counters.add_sent(interface, traffic);
            egress.send_run(port, packets.by_ref().take(count), rejected);
            if rejected.len() > before {
                self.count_rejected(&mut rejected[before..]);
            }
        }
    }

    /// The same one by one, for the rest of the burst: after one short run others are likely, and to look for a long one
    /// would be another guess.
    #[inline(always)]
    fn emit_each<'a>(
        &mut self,
        packets: Drain<'_, Packet<'a>>,
        egress: &mut (impl Egress<'a> + ?Sized),
        rejected: &mut Burst<'a>,
    ) {
        for packet in packets {
            if packet.verdict != Verdict::Forward {
                self.reject(packet, rejected);
                continue;
            }
            let traffic = Traffic { packets: 1, bytes: packet.frame_len() as u64 };
            self.counters.add_sent(packet.interface, traffic);
            if let Err(packet) = egress.send(packet.port, packet) {
                self.reject(packet, rejected);
            }
        }
    }

    #[cold]
    fn reject<'a>(&mut self, packet: Packet<'a>, rejected: &mut Burst<'a>) {
        let before = rejected.len();
        rejected.fill(std::iter::once(packet));
        self.count_rejected(&mut rejected[before..]);
    }

    /// What was to be forwarded, and counted as sent, found its port full.
    #[cold]
    fn count_rejected(&mut self, packets: &mut [Packet<'_>]) {
        for packet in packets {
            if packet.verdict == Verdict::Forward {
                packet.verdict = Verdict::Drop(Reason::EgressFull);
                self.counters.take_back_sent(packet.interface, packet.frame_len());
            }
            self.counters.count_rejected(packet.interface, packet.verdict);
        }
    }
}

/// How many of the first packets go on by the interface of the first one, and what they amount to.
#[inline(always)]
fn run(packets: &[Packet<'_>]) -> (usize, Traffic) {
    let (mut count, mut traffic) = (0, Traffic::default());
    let interface = packets.first().map(|first| first.interface);
    for packet in packets {
        if (packet.verdict != Verdict::Forward) | (Some(packet.interface) != interface) {
            break;
        }
        count += 1;
        traffic.count(packet.frame_len());
    }
    (count, traffic)
}
