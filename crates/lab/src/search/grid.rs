//! The loads that a search may offer.

/// More steps than any measurement can tell apart.
pub const MOST_STEPS: u32 = 1 << 30;
/// The least and the most that a width may lose when it is rounded down to whole steps, as a quotient of both. A width
/// that is nearly a whole number of steps from above could become one step less by a rounding error.
const QUALITY: std::ops::RangeInclusive<f64> = 0.99..=0.999_999;

/// Loads in equal ratios between the smallest and the largest one, called levels 0 to `top`. A width is a number of
/// levels, so that bounds can be compared without rounding errors.
#[derive(Debug, Clone)]
pub struct LoadGrid {
    min: f64,
    max: f64,
    top: u32,
}

/// A part of the grid: two levels with their loads.
#[derive(Clone, Copy)]
struct Section {
    lower: (u32, f64),
    upper: (u32, f64),
}

impl Section {
    /// The level half-way, with the geometric mean of the loads, weighted if the halves differ by a level.
    fn middle(&self) -> (u32, f64) {
        let ((lower, from), (upper, to)) = (self.lower, self.upper);
        let level = lower + (upper - lower) / 2;
        let share = f64::from(level - lower) / f64::from(upper - lower);
        (level, from * ((to.ln() - from.ln()) * share).exp())
    }
}

impl LoadGrid {
    /// Returns the coarsest grid in which each of these relative widths is nearly a whole number of levels; `None` if that
    /// takes too many.
    pub fn new(min: f64, max: f64, widths: &[f64]) -> Option<LoadGrid> {
        let span = max.ln() - min.ln();
        let widths: Vec<f64> = widths.iter().map(|width| -(-width).ln_1p()).collect();
        let mut top = 1.0;
        while top <= f64::from(MOST_STEPS) {
            let finer = widths.iter().filter_map(|width| finer(width / (span / top), top));
            match finer.reduce(f64::max) {
                None => return Some(LoadGrid { min, max, top: top as u32 }),
                Some(next) => top = next.max(top + 1.0).ceil(),
            }
        }
        None
    }

    /// The level of the largest load.
    pub fn top(&self) -> u32 {
        self.top
    }

    /// The load of a level.
    pub fn load(&self, level: u32) -> f64 {
        self.descend(|middle, _| middle.cmp(&level)).1
    }

    /// The highest level whose load is at most this one; 0 for loads below the smallest.
    pub fn level_of(&self, load: f64) -> u32 {
        self.descend(|_, middle| middle.total_cmp(&load)).0
    }

    /// The widest distance in levels whose loads are at most `width` apart, relative to the upper one.
    pub fn levels_of(&self, width: f64) -> u32 {
        self.level_of(self.min / (1.0 - width))
    }

    /// Halves the grid until the middle is what `compare` looks for, or only its lower neighbour is left. Loads are defined
    /// by these halvings, so that each has one value, whatever was asked before.
    fn descend(&self, compare: impl Fn(u32, f64) -> std::cmp::Ordering) -> (u32, f64) {
        let mut section = Section { lower: (0, self.min), upper: (self.top, self.max) };
        for end in [section.upper, section.lower] {
            let beyond = compare(end.0, end.1);
            if beyond.is_eq() || beyond.is_lt() == (end.0 == self.top) {
                return end;
            }
        }
        while section.upper.0 - section.lower.0 > 1 {
            let middle = section.middle();
            match compare(middle.0, middle.1) {
                std::cmp::Ordering::Less => section.lower = middle,
                std::cmp::Ordering::Greater => section.upper = middle,
                std::cmp::Ordering::Equal => return middle,
            }
        }
        section.lower
    }
}

/// The number of levels at which a width of `units` levels (of `top`) becomes nearly a whole number; `None` if it is one.
fn finer(units: f64, top: f64) -> Option<f64> {
    let whole = units.floor();
    let next = (whole + 1.0) / QUALITY.end() / units * top;
    (!QUALITY.contains(&(whole / units))).then_some(next)
}
