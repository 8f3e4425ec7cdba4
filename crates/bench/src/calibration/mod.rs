//! Measures every algorithm of the registry over tables of growing size, and derives preferences from what it costs.

use crate::error::BenchError;
use fullview_table::feed::NextHopModel;
use fullview_table::feed::synthetic::Synthetic;
use fullview_table::fib::Algorithm;
use fullview_table::fib::registry::Registered;
use fullview_table::{Rib, Table, probe};
use indicatif::ProgressBar;

mod effort;
mod trial;

pub use effort::{Cost, Effort};
use trial::AlgorithmTrial;

/// The oracle looks at every route for every key: it is measured on small tables only.
const LARGEST_FOR_LINEAR: usize = 1_000;

/// A changing table: changes a second by prefixes. A full view of a million has ten.
const CHANGES_PER_PREFIX: f64 = 1e-5;
/// A busy core: lookups a second.
const LOOKUPS: f64 = 1e7;
/// What a byte costs in time, since it takes cache from others and there may be thousands of tables: 1 ns for 64 MiB.
const RENT_NS: f64 = 1.0 / (64 << 20) as f64;
/// The preference of the cheapest. The rest of the scale is left to what no measurement knows.
const BEST: f64 = 250.0;

/// The formula, as files and help state it.
pub const FORMULA: &str = "cost = (batch-ns + independent-ns) / 2 + update-us * 1000 * (prefixes / 100000) / 10000000 \
                           + bytes / 64 MiB, in ns a lookup; preference = max(1, 250 * least cost at this size / cost)";

/// One algorithm on one table.
pub struct Row {
    pub algorithm: &'static str,
    pub prefixes: usize,
    pub cost: Cost,
    pub preference: u8,
}

/// A family with synthetic tables.
pub trait Calibrated: Registered {
    fn table(prefixes: usize) -> Synthetic;
    fn rib(table: Table) -> Rib<Self>;
}

impl Calibrated for u32 {
    fn table(prefixes: usize) -> Synthetic {
        Synthetic { inet: prefixes, inet6: 0, ..synthetic() }
    }
    fn rib(table: Table) -> Rib<u32> {
        table.inet
    }
}

impl Calibrated for u128 {
    fn table(prefixes: usize) -> Synthetic {
        Synthetic { inet: 0, inet6: prefixes, ..synthetic() }
    }
    fn rib(table: Table) -> Rib<u128> {
        table.inet6
    }
}

fn synthetic() -> Synthetic {
    Synthetic { next_hops: NextHopModel { count: 64, ..NextHopModel::default() }, ..Synthetic::default() }
}

/// Measures all sizes of a family; the bar advances by one for each algorithm and size.
pub fn family<A: Calibrated>(effort: &Effort, bar: &ProgressBar) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for prefixes in (effort.ladder)(A::FAMILY) {
        bar.set_message(format!("{}: {prefixes} prefixes", A::FAMILY));
        rows.extend(size::<A>(prefixes, effort, bar)?);
    }
    Ok(rows)
}

/// Measures the algorithms in turns: each runs once before any runs again.
fn size<A: Calibrated>(prefixes: usize, effort: &Effort, bar: &ProgressBar) -> Result<Vec<Row>, BenchError> {
    let mut rib = A::rib(A::table(prefixes).table()?);
    let fits = |algorithm: &&dyn Algorithm<A>| algorithm.name() != "linear" || prefixes <= LARGEST_FOR_LINEAR;
    let algorithms = A::ALGORITHMS.iter().copied().filter(fits);
    let trials = algorithms.map(|algorithm| AlgorithmTrial::new(algorithm, &rib, effort));
    let mut trials = trials.collect::<Result<Vec<_>, _>>()?;
    let keys: Vec<A> = probe::in_prefix(&rib, 3).take(effort.keys).collect();
    for _ in 0..effort.rounds {
        trials.iter_mut().for_each(|trial| trial.take_turn(&keys, effort));
    }
    bar.inc((A::ALGORITHMS.len() - trials.len()) as u64);
    let mut costs = Vec::new();
    for trial in trials {
        costs.push((trial.name(), trial.cost(&mut rib, effort)?));
        bar.inc(1);
    }
    Ok(judged(prefixes, costs))
}

fn judged(prefixes: usize, costs: Vec<(&'static str, Cost)>) -> Vec<Row> {
    let least = costs.iter().map(|(_, cost)| nanoseconds(prefixes, cost)).fold(f64::INFINITY, f64::min);
    let preference = |cost: &Cost| (BEST * least / nanoseconds(prefixes, cost)).round().max(1.0) as u8;
    let row = |(algorithm, cost)| Row { algorithm, prefixes, preference: preference(&cost), cost };
    costs.into_iter().map(row).collect()
}

/// The whole cost of a table per lookup, as [`FORMULA`] has it.
fn nanoseconds(prefixes: usize, cost: &Cost) -> f64 {
    let changes = prefixes as f64 * CHANGES_PER_PREFIX;
    let updates = cost.update_us * 1e3 * changes / LOOKUPS;
    (cost.batch_ns + cost.independent_ns) / 2.0 + updates + cost.bytes as f64 * RENT_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(lookup_ns: f64, update_us: f64, bytes: usize) -> Cost {
        Cost { batch_ns: lookup_ns, independent_ns: lookup_ns, update_us, bytes }
    }

    #[test]
    fn preference_falls_with_all_that_a_table_costs() {
        let costs = vec![
            ("cheap", cost(2.0, 0.0, 0)),
            ("slow", cost(4.0, 0.0, 0)),
            ("large", cost(2.0, 0.0, 128 << 20)),
            ("rigid", cost(2.0, 20_000.0, 0)),
            ("hopeless", cost(20_000.0, 0.0, 0)),
        ];
        let preferences =
            |prefixes| judged(prefixes, costs.clone()).iter().map(|row| row.preference).collect::<Vec<_>>();
        assert_eq!(preferences(100_000), [250, 125, 125, 125, 1]);
        assert_eq!(preferences(2), [250, 125, 125, 250, 1], "a table of two routes is not updated");
    }

    #[test]
    fn every_algorithm_is_measured_at_every_size_it_can_take() {
        let bar = ProgressBar::hidden();
        let rows = family::<u32>(&Effort::SMOKE, &bar).unwrap();
        assert_eq!(rows.len(), 3 * u32::ALGORITHMS.len());
        for row in &rows {
            let Cost { batch_ns, independent_ns, update_us, bytes } = row.cost;
            assert!(
                batch_ns > 0.0 && independent_ns > 0.0 && update_us > 0.0 && bytes > 0,
                "{}",
                row.algorithm
            );
        }
        let best =
            |prefixes| rows.iter().filter(|row| row.prefixes == prefixes).map(|row| row.preference).max();
        assert_eq!([2, 32, 1_000].map(best), [Some(250); 3]);
    }
}
