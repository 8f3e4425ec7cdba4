//! The reader, and the state that it shares with the writer.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fullview_table::fib::Fib;
use fullview_table::{Address, NextHop};

use super::support::pair::Distance;

/// Lookups in one call.
const BATCH: usize = 256;

/// The task of the reader: look up, echo one probe of the distance, or return.
const LOOK_UP: u8 = 0;
const ECHO: u8 = 1;
const END: u8 = 2;

/// Keeps the data that one thread writes off the cache lines of other data that the other thread reads.
#[repr(align(128))]
pub struct Apart<T>(T);

/// The state that the threads share.
pub struct Shared<A: Address> {
    published: Apart<Mutex<Arc<dyn Fib<A>>>>,
    /// Grows with every other FIB published, so that the reader takes the lock only if there is one.
    version: Apart<AtomicU64>,
    looked_up: Apart<AtomicU64>,
    order: Apart<AtomicU8>,
    distance: Distance,
}

impl<A: Address> Shared<A> {
    pub fn new(fib: Arc<dyn Fib<A>>) -> Self {
        Shared {
            published: Apart(Mutex::new(fib)),
            version: Apart(AtomicU64::new(0)),
            looked_up: Apart(AtomicU64::new(0)),
            order: Apart(AtomicU8::new(LOOK_UP)),
            distance: Distance::default(),
        }
    }

    fn fetch(&self) -> Arc<dyn Fib<A>> {
        Arc::clone(&self.published.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub fn publish(&self, fib: Arc<dyn Fib<A>>) {
        *self.published.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = fib;
        self.version.0.fetch_add(1, Ordering::Release);
    }

    /// Lookups done so far.
    pub fn looked_up(&self) -> u64 {
        self.looked_up.0.load(Ordering::Relaxed)
    }

    /// Makes the reader return.
    pub fn end(&self) {
        self.order.0.store(END, Ordering::Relaxed);
    }

    /// The distance of the reader's core from that of the caller: see [`Distance::probe`].
    pub fn round_trip(&self) -> Duration {
        self.order.0.store(ECHO, Ordering::Relaxed);
        self.distance.probe(|| self.order.0.store(LOOK_UP, Ordering::Relaxed))
    }

    /// Looks these keys up again and again, until the end.
    pub fn look_up(&self, keys: &[A]) {
        let (mut version, mut fib) = (0, self.fetch());
        let mut answers = [NextHop::NONE; BATCH];
        for batch in keys.chunks_exact(BATCH).cycle() {
            match self.order.0.load(Ordering::Relaxed) {
                END => return,
                ECHO => self.distance.echo(),
                _ => {}
            }
            let newest = self.version.0.load(Ordering::Acquire);
            if newest != version {
                (version, fib) = (newest, self.fetch());
            }
            fib.lookup_batch(batch, &mut answers);
            black_box(&answers);
            self.looked_up.0.fetch_add(BATCH as u64, Ordering::Relaxed);
        }
    }
}
