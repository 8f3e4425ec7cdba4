//! The confidence levels of ministat, and its table of Student's t.

use crate::stats::student::quantile;

/// The confidence level of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// 80 %
    P80,
    /// 90 %
    P90,
    /// 95 %, the default
    P95,
    /// 98 %
    P98,
    /// 99 %
    P99,
    /// ministat calls this level 99.5 %, but its critical values are those of 99.8 %
    P99_5,
}

impl Confidence {
    /// Every level, lowest first.
    pub const ALL: [Confidence; 6] = [
        Confidence::P80,
        Confidence::P90,
        Confidence::P95,
        Confidence::P98,
        Confidence::P99,
        Confidence::P99_5,
    ];

    /// The level in percent, as ministat prints it and as `-c` takes it.
    pub fn percent(self) -> f64 {
        match self {
            Confidence::P80 => 80.0,
            Confidence::P90 => 90.0,
            Confidence::P95 => 95.0,
            Confidence::P98 => 98.0,
            Confidence::P99 => 99.0,
            Confidence::P99_5 => 99.5,
        }
    }

    /// The level with this percentage; `None` if ministat has no such level.
    pub fn from_percent(percent: f64) -> Option<Confidence> {
        Confidence::ALL.into_iter().find(|level| level.percent() == percent)
    }

    /// Probability above the critical value: half of the difference to 100 %. The column that ministat calls 99.5 % has
    /// the critical values of 99.8 %, which leave 0.1 %.
    fn upper_tail(self) -> f64 {
        match self {
            Confidence::P99_5 => 0.001,
            level => (100.0 - level.percent()) / 200.0,
        }
    }

    /// Critical value of Student's t as in ministat's table: three decimals, and the value of the normal distribution
    /// above 100 degrees of freedom.
    pub(super) fn critical(self, degrees_of_freedom: usize) -> f64 {
        let misprint = MISPRINTS.iter().find(|(degrees, _)| *degrees == degrees_of_freedom);
        match misprint {
            Some(&(_, printed)) if self == Confidence::P99_5 => printed,
            _ if degrees_of_freedom > 100 => self.rounded(f64::INFINITY),
            _ => self.rounded(degrees_of_freedom as f64),
        }
    }

    fn rounded(self, degrees_of_freedom: f64) -> f64 {
        (quantile(1.0 - self.upper_tail(), degrees_of_freedom) * 1000.0).round() / 1000.0
    }
}

/// Degrees of freedom at which the last column of ministat's table differs from Student's t rounded to three decimals: it
/// is 0.001 to 0.003 too low, and every ministat uses it.
const MISPRINTS: [(usize, f64); 6] =
    [(7, 4.782), (8, 4.499), (9, 4.296), (10, 4.143), (11, 4.024), (12, 3.929)];

#[cfg(test)]
mod tests {
    use super::Confidence;

    /// Rows of ministat's table.
    #[test]
    fn the_table_is_reproduced() {
        for (degrees, row) in [
            (4, [1.533, 2.132, 2.776, 3.747, 4.604, 7.173]),
            (8, [1.397, 1.860, 2.306, 2.896, 3.355, 4.499]),
            (18, [1.330, 1.734, 2.101, 2.552, 2.878, 3.610]),
            (100, [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]),
            (101, [1.282, 1.645, 1.960, 2.326, 2.576, 3.090]),
        ] {
            assert_eq!(
                Confidence::ALL.map(|level| level.critical(degrees)),
                row,
                "{degrees} degrees of freedom"
            );
        }
    }

    #[test]
    fn other_levels_are_unknown() {
        assert_eq!(Confidence::from_percent(99.5), Some(Confidence::P99_5));
        assert_eq!(Confidence::from_percent(97.0), None);
    }
}
