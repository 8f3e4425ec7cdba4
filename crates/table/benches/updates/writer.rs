//! The writer of a table.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use fullview_table::fib::{Algorithm, Fib, Instance, Outcome};
use fullview_table::{Address, Change, Rib, Route, probe};

use super::reader::Shared;

/// The number of routes withdrawn before they are announced again.
const AWAY: usize = 1_000;

/// The RIB, and the FIB that follows it.
pub struct Writer<A: Address> {
    rib: Rib<A>,
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    /// The FIB published last: a FIB that takes changes in place is not published again.
    published: Arc<dyn Fib<A>>,
    pub rebuilds: usize,
    /// The part of the routes that is withdrawn next.
    next: usize,
}

impl<A: Address> Writer<A> {
    pub fn new(algorithm: &'static dyn Algorithm<A>, rib: &Rib<A>) -> anyhow::Result<Self> {
        let instance = algorithm.compile(rib)?;
        let published = instance.fib();
        Ok(Writer { rib: rib.clone(), algorithm, instance, published, rebuilds: 0, next: 0 })
    }

    pub fn fib(&self) -> Arc<dyn Fib<A>> {
        self.instance.fib()
    }

    fn apply(&mut self, change: Change<A>, shared: &Shared<A>) -> anyhow::Result<()> {
        self.rib.apply(change);
        match self.instance.patch(&self.rib, &[change]) {
            Outcome::Applied => {}
            Outcome::Rebuild | Outcome::Batch => {
                self.instance = self.algorithm.compile(&self.rib)?;
                self.rebuilds += 1;
            }
            Outcome::Error(error) => bail!("{}: {error}", self.algorithm.name()),
        }
        let fib = self.instance.fib();
        if !Arc::ptr_eq(&self.published, &fib) {
            self.published = Arc::clone(&fib);
            shared.publish(fib);
        }
        Ok(())
    }

    /// Withdraws routes and announces them again, one by one, for about this time; stores the time of each change in
    /// `took`.
    pub fn flap(
        &mut self,
        routes: &[Route<A>],
        shared: &Shared<A>,
        length: Duration,
        took: &mut Vec<Duration>,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut before = started;
        while before - started < length {
            let away = routes.chunks(AWAY).nth(self.next).unwrap_or_default();
            self.next = (self.next + 1) % routes.len().div_ceil(AWAY);
            let withdrawn = away.iter().map(|route| Change { prefix: route.prefix, next_hop: None });
            let announced =
                away.iter().map(|route| Change { prefix: route.prefix, next_hop: Some(route.next_hop) });
            for change in withdrawn.chain(announced) {
                self.apply(change, shared)?;
                let now = Instant::now();
                took.push(now - before);
                before = now;
            }
        }
        Ok(())
    }

    /// Compares the FIB with the RIB at every boundary; returns the number of keys.
    pub fn verify(&self) -> anyhow::Result<usize> {
        Ok(probe::verify(&*self.instance.fib(), &self.rib, probe::edges(&self.rib))?)
    }
}
