//! Which load to offer next for one target.

use super::expansion::{Expansion, SharedStep};
use super::history::RelevantBounds;
use super::spacing::{Spacing, middle};
use super::target::SearchTarget;

/// A bound that a trial may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundSide {
    Lower,
    Upper,
}

/// A load that a goal would offer next.
#[derive(Debug, Clone, Copy)]
pub struct Nomination {
    pub level: u32,
    pub duration: f64,
    /// What the step of all goals becomes if this trial is made.
    pub step: SharedStep,
    /// The step grows if the load becomes this bound.
    pub grows_at: Option<BoundSide>,
}

impl Nomination {
    /// Whether this trial is made first.
    pub fn comes_before(&self, other: &Nomination) -> bool {
        let by_load = self.level.cmp(&other.level);
        let longer_first = || other.duration.total_cmp(&self.duration);
        by_load.then_with(longer_first).then_with(|| other.step.cmp(&self.step)).is_lt()
    }
}

/// What a target knows when it chooses a load.
pub struct Choice<'c> {
    pub target: &'c SearchTarget,
    pub bounds: RelevantBounds,
    /// The loads from which the target started: bounds of the target before it, or of the first trials. They do not change
    /// when trials for other goals move the bounds.
    pub start: RelevantBounds,
    pub top: u32,
    pub shared: SharedStep,
    pub expansion: &'c mut Expansion,
}

impl Choice<'_> {
    /// The load to offer, by the first rule that has one; `None` if the target is reached.
    pub fn nominate(&mut self) -> Option<Nomination> {
        self.halve_start()
            .or_else(|| self.repeat(self.start.lower))
            .or_else(|| self.repeat(self.start.upper))
            .or_else(|| self.extend_down())
            .or_else(|| self.extend_up())
            .or_else(|| self.bisect())
    }

    /// Where the starting loads are one or two widths apart, their middle likely decides at once.
    fn halve_start(&mut self) -> Option<Nomination> {
        let (distance, width) = (self.start.distance()?, self.target.width);
        if distance <= width || distance > width.saturating_mul(2) {
            return None;
        }
        let low = self.start.lower?;
        self.narrow(middle(low, low + distance, width))
    }

    /// Measures a starting load with this target's durations.
    fn repeat(&mut self, start: Option<u32>) -> Option<Nomination> {
        self.narrow(start?)
    }

    /// A load whose result leaves bounds about one width apart.
    fn narrow(&mut self, level: u32) -> Option<Nomination> {
        let width = self.target.width;
        self.bounds.leave_open(level, width).then(|| {
            self.expansion.restart(width);
            self.nomination(level, width, None)
        })
    }

    fn nomination(&self, level: u32, step: u32, grows_at: Option<BoundSide>) -> Nomination {
        Nomination { level, duration: self.target.trial_duration, step, grows_at }
    }

    /// Below the upper bound while there is no lower one.
    fn extend_down(&self) -> Option<Nomination> {
        let upper = self.bounds.upper.filter(|&upper| upper > 0 && self.bounds.lower.is_none())?;
        let step = self.expansion.step(self.shared);
        let level = self.place(upper.saturating_sub(step))?;
        Some(self.nomination(level, step, Some(BoundSide::Upper)))
    }

    /// Above the lower bound while there is no upper one.
    fn extend_up(&self) -> Option<Nomination> {
        let lower = self.bounds.lower.filter(|&lower| lower < self.top && self.bounds.upper.is_none())?;
        let step = self.expansion.step(self.shared);
        let level = self.place(lower.saturating_add(step).min(self.top))?;
        Some(self.nomination(level, step, Some(BoundSide::Lower)))
    }

    fn place(&self, level: u32) -> Option<u32> {
        Spacing::new(self.bounds.lower, self.bounds.upper, self.top).place(level, self.target.width)
    }

    /// Between the bounds. Where another goal's trials moved a bound far away, a step from the other bound is shorter than
    /// half the distance, and likely finds a new one.
    fn bisect(&mut self) -> Option<Nomination> {
        let (lower, upper) = (self.bounds.lower?, self.bounds.upper?);
        if lower >= self.top || upper == 0 || upper - lower <= self.target.width {
            return None;
        }
        let half = middle(lower, upper, self.target.width);
        self.step_down(upper, half).or_else(|| self.step_up(lower, half)).or_else(|| {
            let step = (half - lower).min(upper - half);
            self.expansion.restart(step);
            Some(self.nomination(half, step, None))
        })
    }

    /// A step down from the upper bound that ends above the middle and below the starting load.
    fn step_down(&self, upper: u32, half: u32) -> Option<Nomination> {
        let start = self.start.upper.filter(|&start| half < start)?;
        let step = self.expansion.step(self.shared);
        let level = self.place(upper.saturating_sub(step))?;
        (half < level && level < start).then(|| self.nomination(level, step, Some(BoundSide::Upper)))
    }

    /// A step up from the lower bound that ends below the middle and above the starting load.
    fn step_up(&self, lower: u32, half: u32) -> Option<Nomination> {
        let start = self.start.lower.filter(|&start| start < half)?;
        let step = self.expansion.step(self.shared);
        let level = self.place(lower.saturating_add(step).min(self.top))?;
        (start < level && level < half).then(|| self.nomination(level, step, Some(BoundSide::Lower)))
    }
}
