//! A calibrated delay for each packet.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Instant;

use fullview_bench::traffic::load::Router;
use fullview_plane::burst::Burst;

/// How long a step of the chain takes, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Chain {
    step_ns: f64,
}

const TRIES: usize = 50;
const STEPS: u64 = 200_000;

impl Chain {
    /// The fastest of some tries, which no other work disturbed.
    pub fn calibrated() -> Self {
        let delay = Delay { steps: STEPS, fenced: true, state: AtomicU64::new(1) };
        let tries = (0..TRIES).map(|_| {
            let started = Instant::now();
            delay.spend(1);
            started.elapsed()
        });
        Chain { step_ns: tries.min().unwrap_or_default().as_secs_f64() * 1e9 / STEPS as f64 }
    }

    /// A chain of about so many nanoseconds for each packet.
    pub fn delay(self, ns: u32, fenced: bool) -> Delay {
        let steps = (f64::from(ns) / self.step_ns).round() as u64;
        Delay { steps, fenced, state: AtomicU64::new(1) }
    }
}

/// So many steps for each packet.
pub struct Delay {
    steps: u64,
    fenced: bool,
    state: AtomicU64,
}

impl Delay {
    /// Each step needs the result of the one before. A fence makes the load of the first operand wait for the accesses
    /// before it, and later accesses wait for the store of the last result.
    pub fn spend(&self, packets: usize) {
        let steps = self.steps * packets as u64;
        if steps == 0 {
            return;
        }
        if self.fenced {
            fence(Ordering::SeqCst);
        }
        let mut chained = self.state.load(Ordering::Relaxed);
        for _ in 0..steps {
            chained = (chained ^ 0x9e37_79b9).wrapping_mul(6_364_136_223_846_793_005);
        }
        self.state.store(chained, Ordering::Relaxed);
        if self.fenced {
            fence(Ordering::SeqCst);
        }
    }
}

/// A router with a delay of its own, on a bed with one.
pub struct Delayed<R> {
    pub of_bed: Delay,
    pub own: Delay,
    pub router: R,
}

impl<R: Router> Router for Delayed<R> {
    const CHANGES_PACKETS: bool = R::CHANGES_PACKETS;

    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
        self.of_bed.spend(burst.len());
        self.own.spend(burst.len());
        self.router.route(burst, forwarded, dropped);
    }
}
