//! Which algorithm serves a table: the best by its own preference, with hysteresis (FreeBSD `fib_algo.c`).

use crate::addr::Address;
use crate::rib::Summary;

use super::Algorithm;

/// Another algorithm must be better by more than this to take over: FreeBSD's `BEST_DIFF_PERCENT`, 5 × 256 / 100.
pub const HYSTERESIS: u8 = 12;

/// The algorithm that should serve a table with these facts, out of `modules`. `current` stays unless another is
/// better by more than [`HYSTERESIS`]; the first of equals wins. `None` only if there is no module at all.
pub fn choose<A: Address>(
    modules: &[&'static dyn Algorithm<A>],
    current: Option<&'static dyn Algorithm<A>>,
    summary: &Summary,
) -> Option<&'static dyn Algorithm<A>> {
    let best = modules.iter().copied().rev().max_by_key(|module| module.preference(summary));
    let (Some(best), Some(current)) = (best, current) else { return best.or(current) };
    let ahead = best.preference(summary).saturating_sub(current.preference(summary));
    Some(if ahead > HYSTERESIS { best } else { current })
}
