//! A router between memif ports, run by `peers/dpdk/memif.sh` beside DPDK's l3fwd:
//!
//!     memif_router TABLE SOCKET PORTS [CORE]
//!
//! Packets arrive at interface 0 of the server, and may arrive at all others. The next hop of a route is the number of the
//! egress port, 1 to PORTS, with the neighbour 02:00:00:00:00:PORT. The router ends when the server ends.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullview_plane::adjacency::{Adjacencies, Adjacency, MAX_MTU};
use fullview_plane::burst::{Arena, BURST};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::port::memif::{MemifAddress, MemifPort};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::Mac;
use fullview_plane::worker::{DropAll, Worker, Yield};
use fullview_table::fib::Fib;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{NextHop, Rib, Table, Target, feed};

type Failure = Box<dyn Error>;

/// Slots of packet memory for each port.
const SLOTS: usize = 2 * BURST;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, socket, ports, core @ ..] = arguments.as_slice() else {
        return Err("usage: memif_router TABLE SOCKET PORTS [CORE]".into());
    };
    let ports: u16 = ports.parse()?;
    if let Some(core) = core.first() {
        core_affinity::set_for_current(core_affinity::CoreId { id: core.parse()? });
    }
    let table = feed::load(Path::new(table), &feed::Options::default())?.table;
    let forwarder = forwarder(&table, ports)?;
    let connect = |number: u16| {
        Ok(Some(MemifPort::connect(number, &MemifAddress { socket, id: number.into(), secret: "" })?))
    };
    let opened = (0..=ports).map(connect).collect::<Result<Vec<_>, Failure>>()?;
    let mut arena = Arena::new(SLOTS * opened.len());
    Worker::new(forwarder, opened, arena.packets(), DropAll, Yield).run(&AtomicBool::new(false))?;
    Ok(())
}

fn forwarder(table: &Table, ports: u16) -> Result<Forwarder, Failure> {
    let mut adjacencies = Adjacencies::new();
    for index in 1..=table.next_hops.len() as u16 {
        let Some(Target::Number(port)) = table.next_hops.target(NextHop(index)) else {
            return Err("a next hop is no number: write \"192.0.2.0/24 1\"".into());
        };
        let port = u16::try_from(port).ok().filter(|port| (1..=ports).contains(port));
        let interface = port.ok_or("a next hop is the number of no port")?;
        let mac = Mac([2, 0, 0, 0, 0, interface as u8]);
        adjacencies.set(NextHop(index), Adjacency::Neighbor { interface, mac });
    }
    let address = |port: u16| Mac([2, 0, 0, 0, 1, port as u8]);
    let interface = |port| Interface { mtu: MAX_MTU.into(), ..Interface::new(port, address(port)) };
    let tables = TableReaders::fixed(compiled("dir18", &table.inet)?, compiled("btree6", &table.inet6)?);
    let parts = ViewParts::new((0..=ports).map(interface).collect(), adjacencies, tables);
    Ok(Forwarder::new(ViewReader::fixed(View::new(parts)?)))
}

fn compiled<A: Registered>(algorithm: &str, rib: &Rib<A>) -> Result<Arc<dyn Fib<A>>, Failure> {
    let algorithm = registry::find::<A>(algorithm).ok_or("no such algorithm")?;
    Ok(algorithm.compile(rib)?.fib())
}
