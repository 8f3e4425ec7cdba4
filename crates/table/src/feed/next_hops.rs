//! Next hops for routes that come without.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::addr::Family;
use crate::nexthop::{NextHop, NextHops, Target};

use super::error::Fault;

/// Next hops for routes that carry none: numbers 1 to `count`, in runs along the sorted table.
///
/// In a real full view neighbouring prefixes often share a next hop, because one network announced them. The model
/// has just this: the sorted routes are cut into runs whose lengths are geometric with mean `mean_run`, and each run
/// has one next hop drawn evenly from all (so two adjacent runs agree with chance 1/`count`). Exactly `count`
/// different next hops occur, or as many as there are routes if these are fewer: where the runs are too few, more
/// cuts are made; one run of each next hop is set first.
///
/// The same parameters give the same next hops on every platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextHopModel {
    /// How many different next hops, at least 1.
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
    /// Next hops for `routes` routes in sorted order.
    pub(super) fn assign(
        &self,
        family: Family,
        routes: usize,
        known: &mut NextHops,
    ) -> Result<Vec<NextHop>, Fault> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Its own stream per family: loading one family alone gives it the same next hops as loading both.
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
            return Err(Fault::Model { what: "count", value: count.into(), mend: "take 1 to 65534" });
        }
        if !(1.0..=1e9).contains(&mean) {
            return Err(Fault::Model { what: "mean_run", value: mean, mend: "take 1 to 1e9" });
        }
        Ok(())
    }

    /// For each route, whether a run starts there: the first always, at least `kinds` in all.
    fn starts(&self, routes: usize, kinds: usize, rng: &mut ChaCha8Rng) -> Vec<bool> {
        // Integer comparison with a threshold got by one division: the same on every platform.
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

    /// A next hop for each run: each occurs once while there are runs, the rest is drawn; then shuffled.
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
