//! Redirects: a sender is told of the router or station on its own link that it could have sent to itself (RFC 1812,
//! section 5.2.7.2; RFC 4861, section 8.2). Only interfaces that are asked to do so note the occasions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::output::Output;
use super::send::Way;
use super::ways::Hop;
use super::ways::Ways;
use super::{Host, error};
use crate::forward::Detour;
use crate::wire::ethernet::{EtherType, Frame, HEADER};
use crate::wire::ndp::{Builder, LinkAddress};
use crate::wire::{icmp, ipv4, ipv6};

/// Whole units of eight bytes, of which the option that quotes is made.
const QUOTED6: usize = 48;

impl<W: Ways> Host<W> {
    /// Tells a sender of a shorter way, if it may be told and there have not been too many.
    pub fn redirect(&mut self, now: Duration, detour: &Detour, out: &mut Output) {
        let Some(Hop::Station(interface, station)) = self.routes.hop(detour.next_hop) else { return };
        let end = detour.frame_len.min(detour.head.len());
        let Some(packet) = detour.head.get(HEADER..end).filter(|_| interface == detour.interface) else {
            return;
        };
        match (Frame::new_unchecked(&detour.head).outer_ethertype(), station) {
            (EtherType::IPV4, IpAddr::V4(gateway)) => {
                self.redirect_inet(now, packet, interface, gateway, out)
            }
            (EtherType::IPV6, IpAddr::V6(target)) => self.redirect_inet6(now, packet, interface, target, out),
            _ => {}
        }
    }

    fn redirect_inet(
        &mut self,
        now: Duration,
        packet: &[u8],
        interface: u16,
        gateway: Ipv4Addr,
        out: &mut Output,
    ) {
        if packet.len() < ipv4::HEADER {
            return;
        }
        let quoted = ipv4::Packet::new_unchecked(packet);
        let to = Ipv4Addr::from(quoted.source());
        let Some(from) = self.source_inet(interface, to) else { return };
        if quoted.fragment_offset() != 0 || !self.may_err(now, interface) {
            return;
        }
        let end = packet.len().min(quoted.total_len().into());
        let quoted = ipv4::Packet::new_unchecked(&packet[..end]);
        let message = error::message(&quoted, icmp::Kind::Redirect, gateway.to_bits());
        let way = Way { interface, station: to.into() };
        self.originate_icmp(now, (from, to), 0, &message, way, out);
    }

    /// The target is the destination itself, or a router, which hosts know by its link-local address.
    fn redirect_inet6(
        &mut self,
        now: Duration,
        packet: &[u8],
        interface: u16,
        target: Ipv6Addr,
        out: &mut Output,
    ) {
        if packet.len() < QUOTED6 {
            return;
        }
        let quoted = ipv6::Packet::new_unchecked(packet);
        let (to, destination) = (Ipv6Addr::from(quoted.source()), Ipv6Addr::from(quoted.destination()));
        let is_known_so = target.is_unicast_link_local() || target == destination;
        let Some(from) = self.link_local_of(interface).filter(|_| is_known_so) else { return };
        let station = self.neighbors.mac((interface, to.into()));
        let Some(mac) = station.filter(|_| self.may_err(now, interface)) else { return };
        let mut message = Builder::redirect(target.to_bits(), destination.to_bits());
        if let Some(mac) = self.neighbors.mac((interface, target.into())) {
            message = message.link_address(LinkAddress::Target, mac);
        }
        let message = message.redirected(&packet[..QUOTED6]).build();
        self.send_ndp(interface, (from, to), Some(mac), message, out);
    }
}
