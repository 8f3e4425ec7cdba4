//! Loads a routing table and prints the next hops of addresses.
//!
//! ```text
//! cargo run --release -p fullview-table --example lookup -- view.txt.gz 192.0.2.1 2001:db8::1
//! ```

use std::error::Error;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use fullview_table::fib::framework::{Attachment, Time};
use fullview_table::fib::registry::Registered;
use fullview_table::{NextHops, Rib, feed};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: lookup TABLE ADDRESS...")?;
    let addrs = args.map(|text| text.parse()).collect::<Result<Vec<IpAddr>, _>>()?;
    let table = feed::load(Path::new(&file), &feed::Options::default())?.table;
    answer(&table.inet, &table.next_hops, &addrs)?;
    answer(&table.inet6, &table.next_hops, &addrs)
}

/// Lets the framework choose the algorithm that suits the table of one family best, and looks up the addresses of that
/// family.
fn answer<A: Registered>(rib: &Rib<A>, next_hops: &NextHops, addrs: &[IpAddr]) -> Result<(), Box<dyn Error>> {
    // The table does not change, so the time can stay zero; `update.rs` has a table that changes.
    let mut table = Attachment::new(Time::ZERO, 0, A::ALGORITHMS.into(), Arc::default());
    table.evaluate(Time::ZERO, rib)?;
    let mut reader = table.reader();
    let fib = reader.fib();
    let algorithm = table.algorithm().ok_or("no algorithm for this family")?;
    println!("{}: {} routes, {} bytes as {algorithm}", A::FAMILY, rib.len(), fib.footprint().total());
    for addr in addrs.iter().filter_map(|addr| A::from_any(*addr)) {
        match next_hops.target(fib.lookup(addr)) {
            Some(target) => println!("{} goes to {target}", addr.to_ip()),
            None => println!("{} has no route", addr.to_ip()),
        }
    }
    Ok(())
}
