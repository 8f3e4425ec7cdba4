//! Which algorithm serves a table: the best by preference, with hysteresis (FreeBSD `fib_algo.c`).

use crate::addr::Address;
use crate::rib::Summary;

use super::Algorithm;
use super::preference::Preferences;

/// Another algorithm must be better by more than this to take over: FreeBSD's `BEST_DIFF_PERCENT`, 5 × 256 / 100.
pub const HYSTERESIS: u8 = 12;

/// A module with this preference takes over from every other one. Several of FreeBSD's are good for every table, and would
/// serve for ever one that grew, although a module of ours is far better for what it has become.
pub const CERTAIN: u8 = u8::MAX;

/// Chooses the algorithm out of `modules` that should serve a table with these facts. `current` stays unless another is
/// better by more than [`HYSTERESIS`], or better and [`CERTAIN`]; the first of equals wins. `None` only if there is no module.
pub fn choose<A: Address>(
    preferences: &Preferences,
    modules: &[&'static dyn Algorithm<A>],
    current: Option<&'static dyn Algorithm<A>>,
    summary: &Summary,
) -> Option<&'static dyn Algorithm<A>> {
    let preference = |module: &'static dyn Algorithm<A>| preferences.of(module, summary);
    let best = modules.iter().copied().rev().max_by_key(|module| preference(*module));
    let (Some(best), Some(current)) = (best, current) else { return best.or(current) };
    let (of_best, of_current) = (preference(best), preference(current));
    let is_certain = of_best == CERTAIN && of_best > of_current;
    let ahead = of_best.saturating_sub(of_current);
    Some(if ahead > HYSTERESIS || is_certain { best } else { current })
}
