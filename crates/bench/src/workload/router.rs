//! The plane's forwarder as the router under test.

use std::sync::Arc;

use crate::error::BenchError;
use crate::traffic::check::Departure;
use fullview_plane::adjacency::{Adjacencies, Adjacency, MAX_MTU};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::Fib;
use fullview_table::{NextHop, NextHops};

use super::packets;

/// A router with a port that faces the generator, with the address `mac`, and `egress` ports that face the receiver. The
/// next hops are neighbours behind those.
pub fn router(
    inet: Arc<dyn Fib<u32>>,
    inet6: Arc<dyn Fib<u128>>,
    next_hops: &NextHops,
    (mac, egress): (Mac, u16),
) -> Result<Forwarder, BenchError> {
    let mut adjacencies = Adjacencies::new();
    for (index, Departure { port, destination, .. }) in
        (0..).zip(packets::departures(next_hops, egress)).skip(1)
    {
        adjacencies.set(NextHop(index), Adjacency::Neighbor { interface: port, mac: destination });
    }
    let ports = (1..=egress).map(|port| (port, packets::egress_mac(port)));
    let interface = |(port, mac)| Interface { mtu: MAX_MTU.into(), ..Interface::new(port, mac) };
    let interfaces = std::iter::once((packets::INGRESS, mac)).chain(ports).map(interface).collect();
    let parts = ViewParts::new(interfaces, adjacencies, TableReaders::fixed(inet, inet6));
    Ok(Forwarder::new(ViewReader::fixed(View::new(parts)?)))
}
