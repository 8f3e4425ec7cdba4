//! The costs of the framework: idle tables, fetching the FIB, selecting a member of a group, changes, a snapshot.
//!
//! `cargo run --release -p fullview-table --example framework_costs`

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fullview_table::feed::synthetic::Synthetic;
use fullview_table::fib::framework::{Origin, Settings, Tables};
use fullview_table::group::{Groups, Member};
use fullview_table::{Change, NextHop, NextHops, Target};

const TABLES: u32 = 4_096;
const TIMES: u32 = 10_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    idle_tables()?;
    readers()?;
    groups()?;
    snapshot()
}

/// Resident memory of this process (proc(5)); pages of 4 KiB.
fn resident() -> Result<usize, Box<dyn Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split(' ').nth(1).ok_or("no resident pages")?.parse::<usize>()? * 4_096)
}

fn change(next_hop: u16) -> [Change<u32>; 1] {
    [Change {
        prefix: fullview_table::Prefix::containing(0xc612_0000, 15),
        next_hop: Some(NextHop(next_hop)),
    }]
}

fn idle_tables() -> Result<(), Box<dyn Error>> {
    let (before, started) = (resident()?, Instant::now());
    let mut tables = Tables::new(Duration::ZERO, Settings::default());
    (0..TABLES).for_each(|number| tables.create(number));
    let idle = resident()? - before;
    println!(
        "{TABLES} idle tables of both families: {} bytes and {:?} each",
        idle / TABLES as usize,
        started.elapsed() / TABLES
    );
    let started = Instant::now();
    (0..TIMES).for_each(|second| tables.tick(Duration::from_secs(second.into())));
    println!("a tick over them: {:?}", started.elapsed() / TIMES);
    let (before, started) = (resident()?, Instant::now());
    for number in 0..TABLES {
        tables.inet.apply(Duration::ZERO, number, &change(1), Origin::Protocol)?;
    }
    let one = resident()? - before;
    println!(
        "their first IPv4 route: {} bytes and {:?} each",
        one / TABLES as usize,
        started.elapsed() / TABLES
    );
    Ok(())
}

fn readers() -> Result<(), Box<dyn Error>> {
    let mut tables = Tables::new(Duration::ZERO, Settings::default());
    tables.create(0);
    tables.inet.apply(Duration::ZERO, 0, &change(1), Origin::Protocol)?;
    let mut reader = tables.inet.reader(0)?;
    let started = Instant::now();
    for _ in 0..TIMES {
        black_box(reader.fib());
    }
    println!("a reader fetches the FIB: {:.2} ns a time", nanoseconds(started));
    let started = Instant::now();
    for number in 0..10_000 {
        let now = Duration::from_millis(1_000 * number);
        tables.inet.apply(now, 0, &change(number as u16 % 2 + 1), Origin::Protocol)?;
        black_box(reader.fib());
    }
    println!("a change in a table of one route, compiled and published: {:?}", started.elapsed() / 10_000);
    Ok(())
}

fn groups() -> Result<(), Box<dyn Error>> {
    let (mut next_hops, mut groups) = (NextHops::default(), Groups::default());
    let hops = (0..64).map(|number| next_hops.intern(Target::Number(number)));
    let members = hops.map(|hop| Ok(Member { next_hop: hop?, weight: 1 }));
    let members = members.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let group = groups.acquire(&mut next_hops, &members)?;
    groups.publish();
    let mut reader = groups.reader();
    for (what, hop) in [("group of 64", group), ("plain next hop", members[0].next_hop)] {
        let view = reader.groups();
        let started = Instant::now();
        let sum: u64 = (0..TIMES)
            .map(|hash| u64::from(view.select(black_box(hop), hash.wrapping_mul(2_654_435_761)).0))
            .sum();
        println!("a member of a {what}: {:.2} ns (checksum {sum})", nanoseconds(started));
    }
    let started = Instant::now();
    groups.change(&next_hops, group, &members[1..])?;
    groups.publish();
    println!("removing a member of 64: {:?}", started.elapsed());
    Ok(())
}

/// The cost of a change of a full view while a job compiles it: the RIB of the job is a snapshot.
fn snapshot() -> Result<(), Box<dyn Error>> {
    let table = Synthetic { inet: 901_899, inet6: 0, ..Synthetic::default() }.table()?;
    let mut rib = Arc::new(table.inet);
    let _held = Arc::clone(&rib);
    let started = Instant::now();
    Arc::make_mut(&mut rib).apply(change(1)[0]);
    println!(
        "the first change to a full view of {} while it is compiled: {:?}",
        rib.len(),
        started.elapsed()
    );
    Ok(())
}

fn nanoseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}
