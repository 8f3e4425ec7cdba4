//! The plane's forwarder as the router under test.

use std::sync::Arc;

use fullview_plane::adjacency::Adjacencies;
use fullview_plane::forward::{Forwarder, Interface};
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
    for (index, adjacency) in (0..).zip(packets::adjacencies(next_hops)).skip(1) {
        adjacencies.set(NextHop(index), &adjacency)?;
    }
    let interfaces = [mac, packets::EGRESS_MAC].map(|mac| Interface { mac, vlan: None });
    Ok(Forwarder::new(inet, inet6, adjacencies, &interfaces)?)
}
