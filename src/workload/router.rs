//! The plane's forwarder as the router under test.

use std::sync::Arc;

use fullview_plane::adjacency::{Adjacencies, Adjacency, MAX_MTU};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::view::{Parts, TableReaders, View, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::Fib;
use fullview_table::{NextHop, NextHops};

use super::packets;

/// A router with two ports: one that faces the generator, with the address `mac`, and one that faces the receiver,
/// behind which every next hop is a neighbour.
pub fn router(
    inet: Arc<dyn Fib<u32>>,
    inet6: Arc<dyn Fib<u128>>,
    next_hops: &NextHops,
    mac: Mac,
) -> anyhow::Result<Forwarder> {
    let mut adjacencies = Adjacencies::new();
    for (index, departure) in (0..).zip(packets::departures(next_hops)).skip(1) {
        let neighbor = Adjacency::Neighbor { interface: packets::EGRESS, mac: departure.destination };
        adjacencies.set(NextHop(index), neighbor);
    }
    let ports = [(packets::INGRESS, mac), (packets::EGRESS, packets::EGRESS_MAC)];
    let interface = |(port, mac)| Interface { mtu: MAX_MTU.into(), ..Interface::new(port, mac) };
    let interfaces = ports.map(interface).into();
    let parts = Parts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6));
    Ok(Forwarder::new(ViewReader::fixed(View::new(parts)?)))
}
