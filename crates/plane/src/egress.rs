//! Where forwarded packets go.

use crate::burst::{Burst, Packet};

/// Where forwarded packets go.
pub trait Egress<'a> {
    /// Takes a packet that leaves by `port`, or hands it back if the port has no room.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>>;

    /// Whether the port exists. A packet for one that does not would wait for room for ever.
    fn has_port(&self, _port: u16) -> bool {
        true
    }

    /// Takes consecutive packets that leave by `port`; those that it has no room for go to `refused`, which has room for
    /// all of them. A call for each packet would show in the forwarding rate.
    fn send_run(
        &mut self,
        port: u16,
        packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        refused.fill(packets.filter_map(|packet| self.send(port, packet).err()));
    }
}

/// One burst per port; the worker transmits the bursts afterwards.
impl<'a> Egress<'a> for [Burst<'a>] {
    #[inline(always)]
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.push(packet),
            None => Err(packet),
        }
    }

    fn has_port(&self, port: u16) -> bool {
        usize::from(port) < self.len()
    }

    #[inline(always)]
    fn send_run(
        &mut self,
        port: u16,
        packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.send_run(port, packets, refused),
            None => refused.fill(packets),
        }
    }
}

/// One burst for all ports, for a router with a single egress.
impl<'a> Egress<'a> for Burst<'a> {
    #[inline(always)]
    fn send(&mut self, _port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        self.push(packet)
    }

    #[inline(always)]
    fn send_run(
        &mut self,
        _port: u16,
        mut packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        #[allow(clippy::expect_used)] // called once for each packet of an exact-size iterator
        self.fill_exactly(packets.len(), || {
            packets.next().expect("an exact-size iterator has the length it reports")
        });
        refused.fill(packets);
    }
}
