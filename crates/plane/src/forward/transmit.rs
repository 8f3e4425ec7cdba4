//! Last stage: hands forwarded packets to the egress, and the others to the slow path.
//!
//! Where consecutive packets leave by the same interface, one count and one move serve a run of them. Where next hops
//! alternate, a run is one packet or two, and the processor mispredicts its end in three loops: then packets are sent one
//! by one, with the same instructions for every interface.

use std::vec::Drain;

use crate::burst::{Burst, Packet, Slot};
use crate::counters::{Counters, Traffic};
use crate::egress::Egress;
use crate::verdict::{Reason, Verdict};

/// A run of fewer packets costs more than sending them one by one.
const SHORT_RUN: usize = 8;

/// Sends forwarded packets; the others, and those that the egress has no room for, go to `rejected`.
#[inline(always)]
pub(super) fn transmit<'a>(
    counters: &mut Counters,
    mut packets: Drain<'_, Packet<'a>>,
    egress: &mut (impl Egress<'a> + ?Sized),
    rejected: &mut Burst<'a>,
) {
    while let Some(first) = packets.as_slice().first() {
        let (port, interface, before) = (first.port, first.interface, rejected.len());
        let (count, traffic) = run(packets.as_slice());
        if count < SHORT_RUN.min(packets.len()) {
            return transmit_each(counters, packets, egress, rejected);
        }
        counters.add_sent(interface, traffic);
        egress.send_run(port, packets.by_ref().take(count), rejected);
        if rejected.len() > before {
            count_rejected(counters, &mut rejected[before..]);
        }
    }
}

/// Sends the rest of the burst packet by packet: after one short run more are likely, and a search for a long run would
/// be one more mispredicted branch.
#[inline(always)]
fn transmit_each<'a>(
    counters: &mut Counters,
    packets: Drain<'_, Packet<'a>>,
    egress: &mut (impl Egress<'a> + ?Sized),
    rejected: &mut Burst<'a>,
) {
    for packet in packets {
        if packet.verdict != Verdict::Forward {
            reject(counters, packet, rejected);
            continue;
        }
        let traffic = Traffic { packets: 1, bytes: packet.frame_len() as u64 };
        counters.add_sent(packet.interface, traffic);
        if let Err(packet) = egress.send(packet.port, packet) {
            reject(counters, packet, rejected);
        }
    }
}

#[cold]
fn reject<'a>(counters: &mut Counters, packet: Packet<'a>, rejected: &mut Burst<'a>) {
    let before = rejected.len();
    rejected.fill(std::iter::once(packet));
    count_rejected(counters, &mut rejected[before..]);
}

/// Counts rejected packets. One with the verdict "forward" found its egress port full and was counted as sent.
#[cold]
fn count_rejected(counters: &mut Counters, packets: &mut [Packet<'_>]) {
    for packet in packets {
        match packet.verdict {
            Verdict::Forward => drop_without_room(counters, packet),
            verdict => counters.count_rejected(packet.interface, verdict),
        }
    }
}

/// Drops a packet that was counted as sent, because its port has no room.
pub(super) fn drop_without_room(counters: &mut Counters, packet: &mut Slot) {
    packet.verdict = Verdict::Drop(Reason::EgressFull);
    counters.subtract_sent(packet.interface, packet.frame_len());
    counters.count_rejected(packet.interface, packet.verdict);
}

/// How many of the first packets are forwarded by the interface of the first one, and their traffic.
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
