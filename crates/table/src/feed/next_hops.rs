//! Next hops for routes without one.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::addr::Family;
use crate::nexthop::{NextHop, NextHops, Target};

use super::error::Fault;

/// A model of next hops for routes without one: numbers 1 to `count`, in runs along the sorted table.
///
/// In a real full view neighbouring prefixes often share a next hop, because one network announced them. The model
/// reproduces only this: it cuts the sorted routes into runs whose lengths are geometric with mean `mean_run`, and
/// draws one next hop for each run evenly from all (so two adjacent runs have the same with probability 1/`count`).
/// Exactly `count` different next hops occur, or as many as there are routes if these are fewer: if there are too few
/// runs, more cuts are made, and each next hop gets one run first.
///
/// The same parameters give the same next hops on every platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextHopModel {
    /// The number of different next hops, at least 1.
    pub count: u16,
    /// Mean run length in routes, at least 1.
    pub mean_run: f64,
    /// Seed of all choices.
    pub seed: u64,
}

impl Default for NextHopModel {
    /// 64 next hops (a router at a large exchange), runs of 4 routes.
    fn default() -> Self {
        NextHopModel { count: 64, mean_run: 4.0, seed: 0 }
    }
}

impl NextHopModel {
    /// Assigns next hops to `routes` routes in sorted order.
    pub(super) fn assign(
        &self,
        family: Family,
        routes: usize,
        known: &mut NextHops,
    ) -> Result<Vec<NextHop>, Fault> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Each family has its own stream: loading one family alone gives it the same next hops as loading both.
        rng.set_stream(family as u64);
        let kinds = routes.min(usize::from(self.count));
        let starts = self.starts(routes, kinds, &mut rng);
        let runs = self.run_hops(starts.iter().filter(|start| **start).count(), known, &mut rng)?;
        let mut run = 0;
        Ok(starts
            .into_iter()
            .map(|start| {
                run += usize::from(start);
                runs[run - 1]
            })
            .collect())
    }

    fn check(&self) -> Result<(), Fault> {
        let (count, mean) = (self.count, self.mean_run);
        if count == 0 || count > NextHop::MAX {
            return Err(Fault::Model { what: "count", value: count.into(), fix: "take 1 to 65534" });
        }
        if !(1.0..=1e9).contains(&mean) {
            return Err(Fault::Model { what: "mean_run", value: mean, fix: "take 1 to 1e9" });
        }
        Ok(())
    }

    /// For each route, whether a run starts there: at the first route always, and at `kinds` routes at least.
    fn starts(&self, routes: usize, kinds: usize, rng: &mut ChaCha8Rng) -> Vec<bool> {
        // The threshold is the result of one division, and integers are compared: the same on every platform.
        let threshold = (4_294_967_296.0 / self.mean_run) as u64;
        let mut starts: Vec<bool> =
            (0..routes).map(|route| u64::from(rng.next_u32()) < threshold || route == 0).collect();
        let mut count = starts.iter().filter(|start| **start).count();
        while count < kinds {
            let start = &mut starts[rng.random_range(0..routes as u64) as usize];
            count += usize::from(!*start);
            *start = true;
        }
        starts
    }

    /// A next hop for each run: each next hop once while there are runs, the others drawn, all shuffled.
    fn run_hops(
        &self,
        runs: usize,
        known: &mut NextHops,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<NextHop>, Fault> {
        let count = u32::from(self.count);
        let mut numbers: Vec<u32> = (1..=count).collect();
        numbers.shuffle(rng);
        numbers.truncate(runs);
        numbers.resize_with(runs, || rng.random_range(1..=count));
        numbers.shuffle(rng);
        numbers.into_iter().map(|number| Ok(known.intern(Target::Number(number))?)).collect()
    }
}
