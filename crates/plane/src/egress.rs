//! Where forwarded packets go.

use crate::burst::{Burst, Packet};

/// Where forwarded packets go.
pub trait Egress<'a> {
    /// Takes a packet that leaves by `port`, or hands it back if that port has no room.
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>>;

    /// Takes packets that leave by `port` one after the other; those it has no room for go to `refused`, which has room
    /// for all of them. Consecutive packets mostly leave by the same port, and what is done for each of them shows.
    fn send_run(
        &mut self,
        port: u16,
        packets: impl ExactSizeIterator<Item = Packet<'a>>,
        refused: &mut Burst<'a>,
    ) {
        refused.fill(packets.filter_map(|packet| self.send(port, packet).err()));
    }
}

/// One burst per port, to be transmitted afterwards.
impl<'a> Egress<'a> for [Burst<'a>] {
    #[inline(always)]
    fn send(&mut self, port: u16, packet: Packet<'a>) -> Result<(), Packet<'a>> {
        match self.get_mut(usize::from(port)) {
            Some(burst) => burst.push(packet),
            None => Err(packet),
        }
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

/// All packets to one burst, whatever their port: a router with one way out.
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
        #[allow(clippy::expect_used)] // asked as often as there are packets, and no more
        self.fill_exactly(packets.len(), || packets.next().expect("an iterator as long as it says"));
        refused.fill(packets);
    }
}
