//! A whole router without a kernel: the forwarding path of one worker and the host stack, driven burst by burst.

use std::time::Duration;

use super::config::{HostConfig, HostConfigError};
use super::stack::HostStack;
use super::tx_queue::TxQueue;
use fullview_plane::burst::Burst;
use fullview_plane::forward::{Egress, Forwarder};

pub struct StandaloneRouter {
    forwarder: Forwarder,
    host: HostStack,
    tx_queue: TxQueue,
}

impl StandaloneRouter {
    /// # Errors
    /// A [`HostConfigError`] that says which parts of the configuration contradict each other.
    pub fn new(now: Duration, config: &HostConfig) -> Result<StandaloneRouter, HostConfigError> {
        let host = HostStack::new(now, config)?;
        let forwarder = Forwarder::new(host.reader());
        Ok(StandaloneRouter { forwarder, host, tx_queue: TxQueue::default() })
    }

    /// Queues the announcements of the router's addresses: see [`HostStack::announce`].
    pub fn announce(&mut self) {
        self.host.announce(&mut self.tx_queue.output);
    }

    /// Forwards the packets in `burst`, and answers those that cannot be forwarded. Slots that become free are added to
    /// `free`. The router's own frames take their slots from `free`, and wait if it has none or their port no room. The router
    /// takes as many packets from `burst` as `free` has room for.
    pub fn process<'a>(
        &mut self,
        now: Duration,
        burst: &mut Burst<'a>,
        egress: &mut (impl Egress<'a> + ?Sized),
        free: &mut Burst<'a>,
    ) {
        let before = free.len();
        self.forwarder.process(burst, egress, free);
        for packet in &free[before..] {
            self.host.handle(now, packet, self.forwarder.way_out(packet), &mut self.tx_queue.output);
        }
        for candidate in self.forwarder.redirect_candidates() {
            self.host.redirect(now, candidate, &mut self.tx_queue.output);
        }
        self.host.tick(now, &mut self.tx_queue.output);
        self.tx_queue.send(egress, free);
    }

    /// Whether none of the router's own frames waits for a slot or for its port.
    pub fn has_sent_all(&self) -> bool {
        self.tx_queue.is_empty()
    }

    /// When [`StandaloneRouter::process`] has work to do even if no packets arrive: at once, if frames wait.
    pub fn next_deadline(&self) -> Option<Duration> {
        if self.has_sent_all() { self.host.next_deadline() } else { Some(Duration::ZERO) }
    }

    /// The router's own frames dropped because too many waited, or because they were longer than a slot.
    pub fn frames_dropped(&self) -> u64 {
        self.tx_queue.frames_dropped()
    }

    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    pub fn host(&self) -> &HostStack {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::Output;
    use super::*;
    use fullview_plane::burst::Arena;
    use fullview_plane::forward::WayOut;
    use fullview_plane::interface::{Interface, InterfaceAddress};
    use fullview_plane::verdict::{Punt, Verdict};
    use fullview_plane::wire::ethernet::{EtherType, HEADER, Mac};
    use fullview_plane::wire::ipv4;
    use fullview_plane::wire::ipv4::Ipv4Packet;

    fn interface(number: u16) -> Interface {
        let own = InterfaceAddress { ip: [10, 0, number as u8, 1].into(), len: 24 };
        Interface { addresses: vec![own], ..Interface::new(number, Mac([2, 0, 0, 0, 0, 1])) }
    }

    /// An IPv4 packet from 10.0.0.9 to 10.0.1.9.
    fn packet() -> Vec<u8> {
        let mut frame =
            [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &EtherType::IPV4.0.to_be_bytes()].concat();
        frame.extend([0; ipv4::HEADER]);
        let mut packet = Ipv4Packet::new_unchecked(&mut frame[HEADER..]);
        packet.set_header_len(ipv4::HEADER);
        packet.set_total_len(ipv4::HEADER as u16);
        packet.set_ttl(9);
        packet.set_source(0x0a00_0009);
        packet.set_destination(0x0a00_0109);
        packet.fill_checksum();
        frame
    }

    #[test]
    fn a_packet_leaves_only_by_the_interface_that_the_filter_judged() {
        let config = HostConfig { interfaces: (0..2).map(interface).collect(), ..HostConfig::default() };
        for (way, asks) in [(WayOut::Any, 1), (WayOut::By(1), 1), (WayOut::By(0), 0), (WayOut::None, 0)] {
            let mut router = StandaloneRouter::new(Duration::ZERO, &config).unwrap();
            let mut arena = Arena::new(1);
            let slot = arena.packets().next().unwrap();
            assert!(slot.set_frame(&packet()));
            (slot.interface, slot.verdict) = (0, Verdict::Punt(Punt::Glean));
            let mut out = Output::default();
            router.host.handle(Duration::ZERO, slot, way, &mut out);
            // The neighbour is asked for its address.
            assert_eq!(
                (out.frames.len(), router.host.counters().unjudged),
                (asks, 1 - asks as u64),
                "{way:?}"
            );
        }
    }
}
