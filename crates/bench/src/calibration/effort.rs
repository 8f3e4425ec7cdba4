//! How much a calibration measures, and the figures it takes of each algorithm.

use std::time::Duration;

use fullview_table::Family;
use fullview_table::fib::registry::Registered;

/// How much is measured.
pub struct Effort {
    /// Turns of every contestant.
    pub rounds: usize,
    /// How long one kind of lookup is timed in a turn.
    pub slice: Duration,
    /// How long changes are timed for one contestant.
    pub changes: Duration,
    pub keys: usize,
    /// Sizes of tables, by family.
    pub ladder: fn(Family) -> Vec<usize>,
}

impl Effort {
    pub const FULL: Effort = Effort {
        rounds: 5,
        slice: Duration::from_millis(20),
        changes: Duration::from_millis(300),
        keys: 1 << 20,
        ladder,
    };
    pub const SMOKE: Effort = Effort {
        rounds: 1,
        slice: Duration::from_millis(1),
        changes: Duration::from_millis(5),
        keys: 1 << 10,
        ladder: |_| vec![2, 32, 1_000],
    };

    /// Tables compiled and timed in all.
    pub fn steps(&self) -> usize {
        let of_family = |family, algorithms| (self.ladder)(family).len() * algorithms;
        of_family(Family::Inet, u32::ALGORITHMS.len()) + of_family(Family::Inet6, u128::ALGORITHMS.len())
    }
}

/// The last rungs are the full view of 2025.
fn ladder(family: Family) -> Vec<usize> {
    let full = match family {
        Family::Inet => 901_899,
        Family::Inet6 => 160_147,
    };
    vec![2, 8, 32, 128, 1_000, 10_000, 100_000, full]
}

/// What an algorithm costs on a table.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// A lookup in a batch.
    pub batch_ns: f64,
    /// An independent lookup: the next key is known in advance.
    pub independent_ns: f64,
    /// A change, including the compilation where the algorithm needs one.
    pub update_us: f64,
    pub bytes: usize,
}
