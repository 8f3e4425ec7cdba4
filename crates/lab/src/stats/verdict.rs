//! The verdict that follows from an interval and the margin.

use super::difference::Effect;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of a comparison for its variant. A higher value of the metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The variant has the higher value: the whole interval is above the margin.
    Better,
    /// The variant has the lower value: the whole interval is below the margin.
    Worse,
    /// The whole interval is within the margin.
    Equivalent,
    /// None of the other verdicts is proven.
    Undecided,
}

impl Verdict {
    /// The verdict of an interval. `margin` is the relative difference that does not matter.
    pub(crate) fn of(effect: &Effect, margin: f64) -> Verdict {
        match effect {
            Effect { low, .. } if *low > margin => Verdict::Better,
            Effect { high, .. } if *high < -margin => Verdict::Worse,
            Effect { low, high, .. } if -margin < *low && *high < margin => Verdict::Equivalent,
            _ => Verdict::Undecided,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, Verdict};

    fn verdict(low: f64, high: f64, margin: f64) -> Verdict {
        let effect =
            Effect { estimate: f64::midpoint(low, high), low, high, p: 0.5, degrees_of_freedom: 4.0 };
        Verdict::of(&effect, margin)
    }

    #[test]
    fn each_verdict_has_its_case() {
        assert_eq!(verdict(0.011, 0.03, 0.01), Verdict::Better);
        assert_eq!(verdict(-0.03, -0.011, 0.01), Verdict::Worse);
        assert_eq!(verdict(-0.009, 0.009, 0.01), Verdict::Equivalent);
        assert_eq!(verdict(0.005, 0.03, 0.01), Verdict::Undecided);
        assert_eq!(verdict(-0.03, 0.03, 0.01), Verdict::Undecided);
    }

    #[test]
    fn a_limit_of_the_interval_on_the_margin_proves_nothing() {
        assert_eq!(verdict(0.01, 0.03, 0.01), Verdict::Undecided);
        assert_eq!(verdict(-0.03, -0.01, 0.01), Verdict::Undecided);
        assert_eq!(verdict(-0.01, 0.005, 0.01), Verdict::Undecided);
    }

    /// Without a margin every difference matters, so that nothing is equivalent.
    #[test]
    fn a_margin_of_zero_leaves_the_sign_of_the_difference() {
        assert_eq!(verdict(0.001, 0.03, 0.0), Verdict::Better);
        assert_eq!(verdict(-0.001, 0.03, 0.0), Verdict::Undecided);
        assert_eq!(verdict(0.0, 0.0, 0.0), Verdict::Undecided);
    }

    /// `report.json` contains verdicts in this form.
    #[test]
    fn verdicts_are_stored_by_name() {
        for (verdict, json) in [(Verdict::Better, r#""better""#), (Verdict::Undecided, r#""undecided""#)] {
            assert_eq!(serde_json::to_string(&verdict).expect("serializable"), json);
            assert_eq!(serde_json::from_str::<Verdict>(json).expect("deserializable"), verdict);
        }
    }
}
