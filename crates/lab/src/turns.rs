//! Turns: the arms of a panel run one slice each, round after round, in a fresh random order each round.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::SubjectError;
use crate::panel::{Arm, Panel, Verified};
use crate::slices::Slices;

/// The lengths of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnLength {
    /// Discarded at the beginning of each turn.
    pub(crate) lead_in: Duration,
    /// What counts.
    pub(crate) slice: Duration,
}

impl TurnLength {
    pub(crate) fn total(self) -> Duration {
        self.lead_in + self.slice
    }
}

/// The arms that take turns: every control, and the members that are not set aside.
#[derive(Debug, Clone)]
pub(crate) struct Arms {
    controls: usize,
    members: usize,
    active: Vec<Arm>,
}

impl Arms {
    pub(crate) fn of(panel: &dyn Panel, verified: &[Verified]) -> Self {
        let controls = panel.controls();
        let ready = (0..verified.len()).filter(|&member| verified[member] == Verified::Ready);
        let active = (0..controls).map(Arm::Control).chain(ready.map(Arm::Member)).collect();
        Self { controls, members: verified.len(), active }
    }

    /// The arms that take turns.
    pub(crate) fn active(&self) -> &[Arm] {
        &self.active
    }

    /// The position of an arm among all of the panel.
    pub(crate) fn index(&self, arm: Arm) -> usize {
        match arm {
            Arm::Control(control) => control,
            Arm::Member(member) => self.controls + member,
        }
    }

    /// All arms of the panel, those set aside included.
    pub(crate) fn all(&self) -> usize {
        self.controls + self.members
    }
}

/// A turn that failed.
#[derive(Debug)]
pub(crate) struct FailedTurn {
    pub(crate) arm: Arm,
    pub(crate) source: SubjectError,
}

/// Runs so many rounds, or fewer if `stop` becomes true.
pub(crate) fn rounds(
    panel: &mut dyn Panel,
    arms: &Arms,
    count: usize,
    length: TurnLength,
    random: &mut ChaCha8Rng,
    stop: &AtomicBool,
) -> Result<Slices, FailedTurn> {
    let mut slices = Slices::new(arms.active.len());
    let mut order = arms.active.clone();
    for _ in (0..count).take_while(|_| !stop.load(Ordering::Relaxed)) {
        order.shuffle(random);
        for &arm in &order {
            let slice = panel
                .slice(arm, length.lead_in, length.slice)
                .map_err(|source| FailedTurn { arm, source })?;
            slices.push(arms.index(arm), &slice);
        }
    }
    Ok(slices)
}
