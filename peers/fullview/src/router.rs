//! The router: one interface for each port, one neighbour behind each.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use fullview_plane::adjacency::{Adjacencies, Adjacency, MAX_MTU};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::Fib;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{NextHop, Rib, Table, Target, feed};

/// A router with the routes of this file, compiled by this IPv4 algorithm, and so many ports besides the one that receives.
pub fn forwarder(table: &Path, algorithm: &str, ports: u16) -> Result<Forwarder> {
    let table = feed::load(table, &feed::Options::default())?.table;
    let adjacencies = adjacencies(&table, ports)?;
    let address = |port: u16| Mac([2, 0, 0, 0, 1, port as u8]);
    let interface = |port| Interface { mtu: MAX_MTU.into(), ..Interface::new(port, address(port)) };
    let tables = TableReaders::fixed(compiled(algorithm, &table.inet)?, compiled("btree6", &table.inet6)?);
    let parts = ViewParts::new((0..=ports).map(interface).collect(), adjacencies, tables);
    Ok(Forwarder::new(ViewReader::fixed(View::new(parts)?)))
}

fn adjacencies(table: &Table, ports: u16) -> Result<Adjacencies> {
    let mut adjacencies = Adjacencies::new();
    for index in 1..=table.next_hops.len() as u16 {
        let Some(Target::Number(port)) = table.next_hops.target(NextHop(index)) else {
            bail!("a next hop is no number: write \"192.0.2.0/24 1\"");
        };
        let port = u16::try_from(port).ok().filter(|port| (1..=ports).contains(port));
        let interface = port.context("a next hop is the number of no port")?;
        let mac = Mac([2, 0, 0, 0, 0, interface as u8]);
        adjacencies.set(NextHop(index), Adjacency::Neighbor { interface, mac });
    }
    Ok(adjacencies)
}

fn compiled<A: Registered>(algorithm: &str, rib: &Rib<A>) -> Result<Arc<dyn Fib<A>>> {
    let algorithm =
        registry::find::<A>(algorithm).with_context(|| format!("{algorithm}: no such algorithm"))?;
    Ok(algorithm.compile(rib)?.fib())
}
