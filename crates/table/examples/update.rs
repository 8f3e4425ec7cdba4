//! Withdraws and announces routes while another thread looks up, and shows that every answer was one of the two right
//! ones.
//!
//! ```text
//! cargo run --release -p fullview-table --example update -- view.txt.gz
//! ```

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fullview_table::fib::{Algorithm, CompileError, Fib, Instance, Outcome, registry};
use fullview_table::{Address, Change, NextHop, Rib, Route, feed};

/// Where the writer leaves the newest FIB for readers to take: once a burst, not once a lookup.
struct Published(Mutex<Arc<dyn Fib<u32>>>);

impl Published {
    fn get(&self) -> Arc<dyn Fib<u32>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, fib: Arc<dyn Fib<u32>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fib;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: update TABLE")?;
    let mut rib = feed::load(Path::new(&file), &feed::Options::default())?.table.inet;
    let routes: Vec<Route<u32>> = rib.iter().step_by(10).collect();
    let watched: Vec<Watched> = routes.iter().map(|route| Watched::new(&rib, route.prefix.first())).collect();
    let mut writer = Writer::new(registry::find("dpdk_lpm4").ok_or("no such algorithm")?, &rib)?;
    let published = Published(Mutex::new(writer.instance.fib()));
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        let reader = threads.spawn(|| read(&published, &watched, &done));
        let written = routes.iter().try_for_each(|route| writer.flap(&mut rib, *route, &published));
        done.store(true, Ordering::Relaxed);
        let lookups = reader.join().map_err(|_| "the reader panicked")??;
        println!("{lookups} right answers during {} changes", 2 * routes.len());
        Ok(written?)
    })
}

/// An address, and the two answers it may get while one route at a time is away: with the route that decides, and
/// without it.
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

/// The one who changes the table: the algorithm, and what it has compiled.
struct Writer {
    algorithm: &'static dyn Algorithm<u32>,
    instance: Box<dyn Instance<u32>>,
}

impl Writer {
    fn new(algorithm: &'static dyn Algorithm<u32>, rib: &Rib<u32>) -> Result<Self, CompileError> {
        Ok(Writer { algorithm, instance: algorithm.compile(rib)? })
    }

    /// Takes a route away and brings it back.
    fn flap(
        &mut self,
        rib: &mut Rib<u32>,
        route: Route<u32>,
        published: &Published,
    ) -> Result<(), CompileError> {
        for next_hop in [None, Some(route.next_hop)] {
            let change = Change { prefix: route.prefix, next_hop };
            rib.apply(change);
            if self.instance.patch(rib, &[change]) != Outcome::Applied {
                self.instance = self.algorithm.compile(rib)?;
            }
            published.set(self.instance.fib());
        }
        Ok(())
    }
}

/// Looks up all addresses again and again; returns how many lookups that were.
fn read(published: &Published, watched: &[Watched], done: &AtomicBool) -> Result<usize, String> {
    let addrs: Vec<u32> = watched.iter().map(|watched| watched.addr).collect();
    let mut answers = vec![NextHop::NONE; addrs.len()];
    let mut lookups = 0;
    while !done.load(Ordering::Relaxed) {
        published.get().lookup_batch(&addrs, &mut answers);
        for (watched, answer) in watched.iter().zip(&answers) {
            if !watched.right.contains(answer) {
                return Err(format!("{} went to next hop {}", watched.addr.to_ip(), answer.0));
            }
        }
        lookups += addrs.len();
    }
    Ok(lookups)
}
