//! Withdraws and announces routes while another thread looks up, and checks that every answer is one of the two right
//! ones.
//!
//! ```text
//! cargo run --release -p fullview-table --example update -- view.txt.gz
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use fullview_table::fib::CompileError;
use fullview_table::fib::framework::{Attachment, Origin, Reader};
use fullview_table::fib::registry::Registered;
use fullview_table::{Address, Change, NextHop, Rib, Route, feed};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: update TABLE")?;
    let rib = feed::load(Path::new(&file), &feed::Options::default())?.table.inet;
    let routes: Vec<Route<u32>> = rib.iter().step_by(10).collect();
    let watched: Vec<Watched> = routes.iter().map(|route| Watched::new(&rib, route.prefix.first())).collect();
    let mut writer = Writer::new(rib)?;
    let (reader, done) = (writer.table.reader(), AtomicBool::new(false));
    let lookups = thread::scope(|threads| {
        let reading = threads.spawn(|| read(reader, &watched, &done));
        routes.iter().for_each(|route| writer.flap(*route));
        writer.sync();
        done.store(true, Ordering::Relaxed);
        reading.join().map_err(|_| "the reader panicked")?
    })?;
    println!("{lookups} right answers during {} changes", 2 * routes.len());
    Ok(())
}

/// An address, and its two answers: with the route that decides, and while that route is withdrawn.
struct Watched {
    addr: u32,
    right: [NextHop; 2],
}

impl Watched {
    fn new(rib: &Rib<u32>, addr: u32) -> Self {
        let decides = rib.longest_match(addr);
        let covering = decides.and_then(|route| rib.covering(route.prefix));
        let right = [decides, covering].map(|route| route.map_or(NextHop::NONE, |route| route.next_hop));
        Watched { addr, right }
    }
}

/// The writer: the routes, the framework that serves them, and the start of its time.
struct Writer {
    rib: Rib<u32>,
    table: Attachment<u32>,
    began: Instant,
}

impl Writer {
    fn new(rib: Rib<u32>) -> Result<Self, CompileError> {
        let began = Instant::now();
        let mut table = Attachment::new(began.elapsed(), 0, u32::ALGORITHMS.into(), Arc::default());
        table.evaluate(began.elapsed(), &rib)?;
        Ok(Writer { rib, table, began })
    }

    /// Withdraws a route and announces it again.
    fn flap(&mut self, route: Route<u32>) {
        for next_hop in [None, Some(route.next_hop)] {
            let change = Change { prefix: route.prefix, next_hop };
            self.rib.apply(change); // the RIB first: it is the truth
            self.table.changed(self.began.elapsed(), &self.rib, &[change], Origin::Protocol);
        }
    }

    /// Does the work that was delayed in the storm of changes. A program that runs on would call this at each deadline.
    fn sync(&mut self) {
        while !self.table.is_synced()
            && let Some(due) = self.table.next_deadline()
        {
            thread::sleep(due.saturating_sub(self.began.elapsed()));
            self.table.tick(self.began.elapsed(), &self.rib);
        }
    }
}

/// Looks up all addresses again and again; returns the number of lookups.
fn read(mut reader: Reader<u32>, watched: &[Watched], done: &AtomicBool) -> Result<usize, String> {
    let addrs: Vec<u32> = watched.iter().map(|watched| watched.addr).collect();
    let mut answers = vec![NextHop::NONE; addrs.len()];
    let mut lookups = 0;
    while !done.load(Ordering::Relaxed) {
        reader.fib().lookup_batch(&addrs, &mut answers);
        for (watched, answer) in watched.iter().zip(&answers) {
            if !watched.right.contains(answer) {
                return Err(format!("{} went to next hop {}", watched.addr.to_ip(), answer.0));
            }
        }
        lookups += addrs.len();
    }
    Ok(lookups)
}
