//! When to evaluate again which algorithm suits a table best.

use super::settings::{Settings, Time};

/// Changes since the last evaluation, and when the next one is due.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    changes: u64,
    due: Option<Time>,
}

impl Evaluation {
    /// Makes an evaluation due some time after the first change, or soon after many.
    pub(super) fn changed(&mut self, now: Time, changes: u64, settings: &Settings) {
        let due = self.due.get_or_insert(now + settings.evaluate_after);
        let before = self.changes;
        self.changes = before.saturating_add(changes);
        if before < settings.evaluate_after_changes && self.changes >= settings.evaluate_after_changes {
            *due = (*due).min(now + settings.evaluate_soon);
        }
    }

    /// Makes an evaluation due at once.
    pub(super) fn ask(&mut self, now: Time) {
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    pub(super) fn answered(&mut self) {
        *self = Evaluation::default();
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_is_due_after_half_a_minute_or_the_hundredth_change() {
        let (mut evaluation, settings) = (Evaluation::default(), Settings::default());
        assert_eq!(evaluation.due(), None);
        let second = Time::from_secs;
        evaluation.changed(second(3), 1, &settings);
        assert_eq!(evaluation.due(), Some(second(33)));
        evaluation.changed(second(4), 98, &settings);
        assert_eq!(evaluation.due(), Some(second(33)));
        evaluation.changed(second(5), 1, &settings);
        assert_eq!(evaluation.due(), Some(Time::from_millis(5_001)));
        evaluation.changed(second(6), 500, &settings);
        assert_eq!(evaluation.due(), Some(Time::from_millis(5_001)));
        evaluation.answered();
        evaluation.changed(second(40), 1, &settings);
        assert_eq!(evaluation.due(), Some(second(70)));
        evaluation.ask(second(41));
        assert_eq!(evaluation.due(), Some(second(41)));
    }
}
