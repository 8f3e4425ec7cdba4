//! Loads a routing table and says where addresses go.
//!
//! ```text
//! cargo run --release -p fullview-table --example lookup -- view.txt.gz 192.0.2.1 2001:db8::1
//! ```

use std::error::Error;
use std::net::IpAddr;
use std::path::Path;

use fullview_table::fib::choice;
use fullview_table::fib::preference::Preferences;
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

/// Compiles one family with the algorithm that suits its table best, and answers the addresses of that family.
fn answer<A: Registered>(rib: &Rib<A>, next_hops: &NextHops, addrs: &[IpAddr]) -> Result<(), Box<dyn Error>> {
    let algorithm = choice::choose(&Preferences::Guessed, A::ALGORITHMS, None, &rib.summary())
        .ok_or("no algorithm for this family")?;
    let fib = algorithm.compile(rib)?.fib();
    println!(
        "{}: {} routes, {} bytes as {}",
        A::FAMILY,
        rib.len(),
        fib.footprint().total(),
        algorithm.name()
    );
    for addr in addrs.iter().filter_map(|addr| A::from_any(*addr)) {
        match next_hops.target(fib.lookup(addr)) {
            Some(target) => println!("{} goes to {target}", addr.to_ip()),
            None => println!("{} has no route", addr.to_ip()),
        }
    }
    Ok(())
}
