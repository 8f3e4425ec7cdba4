//! Keeps trials away from loads that were measured, and from the limits.

use std::ops::RangeInclusive;

/// Levels between which a trial is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Spacing {
    /// A measured bound, or `None`: then the smallest load may be offered.
    lower: Option<u32>,
    /// A measured bound, or `None`: then the largest load may be offered.
    upper: Option<u32>,
    /// The level of the largest load.
    top: u32,
}

impl Spacing {
    pub fn new(lower: Option<u32>, upper: Option<u32>, top: u32) -> Spacing {
        Spacing { lower, upper, top }
    }

    /// Moves a level so far that it is `width` or more from both ends, or at an end that may be offered. `None` if there
    /// is no room, or if the level is not between the bounds.
    pub fn place(&self, level: u32, width: u32) -> Option<u32> {
        if self.lower.is_some_and(|lower| level <= lower) || self.upper.is_some_and(|upper| upper <= level) {
            return None;
        }
        let (low, high) = (self.lower.unwrap_or(0), self.upper.unwrap_or(self.top));
        if width >= high - low {
            return self.end();
        }
        let room = room(low, high, width);
        Some(if level < *room.start() {
            if self.lower.is_some() { *room.start() } else { low }
        } else if level > *room.end() {
            if self.upper.is_some() { *room.end() } else { high }
        } else {
            level
        })
    }

    /// An end that may be offered, the lower one before the upper one.
    fn end(&self) -> Option<u32> {
        match (self.lower, self.upper) {
            (None, _) => Some(0),
            (_, None) => Some(self.top),
            _ => None,
        }
    }
}

/// The levels that are `width` or more from both ends; the middle if there are none.
fn room(low: u32, high: u32, width: u32) -> RangeInclusive<u32> {
    let (from, to) = (low + width, high - width);
    if from <= to {
        return from..=to;
    }
    let middle = middle(low, high, width);
    middle..=middle
}

/// A level between two that are more than `width` apart. One part is `width` times a power of two, so that further
/// halvings end at exactly `width`; of the two most even such splits the more even one, and the upper part is the larger or
/// equal one wherever both are possible: a load below the middle is less likely to lose.
pub fn middle(low: u32, high: u32, width: u32) -> u32 {
    let whole = u64::from(high - low);
    let mut unit = u64::from(width);
    while whole < 2 * unit {
        if unit % 2 == 1 {
            return low + (high - low) / 2;
        }
        unit /= 2;
    }
    low + lower_part(whole, unit) as u32
}

/// The lower part of a split of `whole`, which is at least twice `unit`.
fn lower_part(whole: u64, unit: u64) -> u64 {
    let mut part = unit;
    while 4 * part < whole {
        part *= 2;
    }
    let rest = whole.saturating_sub(2 * part);
    if whole == 2 * part || part * (whole - part) > 2 * part * rest { part } else { rest }
}
