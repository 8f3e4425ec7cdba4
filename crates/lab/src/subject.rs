//! What is measured: anything that takes a configuration and yields samples.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::experiment::Window;
use crate::stats::median;
use crate::validity::Validity;

/// Why a subject could not be made ready, verified or measured.
pub type SubjectError = Box<dyn std::error::Error + Send + Sync>;

/// Makes subjects: what the program implements for each kind of experiment.
pub trait Bench<S> {
    /// Makes the subject ready for one run: `settings` are the variant's, already laid over the common ones.
    fn prepare<'a>(
        &'a mut self,
        settings: &S,
        family: &str,
        seed: u64,
    ) -> Result<Box<dyn Subject + 'a>, SubjectError>;

    /// Lines for the report's list of conditions, known before the first run: cores, ports, tables, flows, sizes, load.
    fn conditions(&mut self) -> Vec<String>;
}

/// One subject, made ready for one run.
pub trait Subject {
    /// Proves that the subject computes the right thing. Nothing is timed before this has passed.
    fn verify(&mut self) -> Result<(), SubjectError>;

    /// Runs through `window` once. When `stop` becomes true the run ends early and says so in
    /// [`Measurement::interrupted`].
    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError>;

    /// Log lines that belong in the report, such as the attachment of an algorithm or a switch between two. A line may
    /// begin with the time it happened, in seconds in brackets, as a kernel prints it: `[0.120000] …`.
    fn events(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What one run yielded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// The value of the run, in the experiment's metric: the median of its samples.
    pub value: f64,
    /// The rate in each sample of the window, in order of time.
    pub samples: Vec<f64>,
    /// Counts and secondary rates by name: offered, sent, received, lost, …
    pub counters: BTreeMap<String, f64>,
    /// Reasons to doubt the run that the subject itself noticed.
    pub doubts: Vec<Validity>,
    /// Whether the run ended early because it was told to.
    pub interrupted: bool,
}

impl Measurement {
    /// A complete run without counters or doubts, its value the median of `samples`. `None` when there are none.
    pub fn of(samples: Vec<f64>) -> Option<Self> {
        Some(Self { value: median(&samples)?, samples, ..Self::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::Measurement;

    #[test]
    fn the_value_is_the_median_of_the_samples() {
        assert_eq!(Measurement::of(vec![3.0, 1.0, 2.0]).map(|run| run.value), Some(2.0));
        assert_eq!(Measurement::of(Vec::new()), None);
    }
}
