//! The interface of what the lab measures: a subject takes settings and yields samples.

use std::sync::atomic::AtomicBool;

use crate::experiment::Window;
use crate::measurement::Measurement;

/// Why a subject could not be prepared, verified or measured.
pub type SubjectError = Box<dyn std::error::Error + Send + Sync>;

/// Makes subjects. The program implements it for the settings `S`.
pub trait Bench<S> {
    /// Prepares the subject for one run. `settings` are those of the variant merged with the common ones.
    fn prepare<'a>(
        &'a mut self,
        settings: &S,
        family: &str,
        seed: u64,
    ) -> Result<Box<dyn Subject + 'a>, SubjectError>;

    /// Returns lines for the report's list of conditions, known before the first run: cores, ports, tables, flows, load.
    fn conditions(&mut self) -> Vec<String>;
}

/// A subject that is prepared for one run.
pub trait Subject {
    /// Checks that the results of the subject are right. The lab measures nothing before this has passed.
    fn verify(&mut self) -> Result<(), SubjectError>;

    /// Runs once through the phases of `window`. When `stop` becomes true, the run ends early and sets
    /// [`Measurement::interrupted`].
    fn measure(&mut self, window: &Window, stop: &AtomicBool) -> Result<Measurement, SubjectError>;

    /// Returns log lines for the report, such as the attachment of an algorithm or a switch between two. A line may begin
    /// with its time in seconds in brackets, in the kernel's format: `[0.120000] …`.
    fn events(&self) -> Vec<String> {
        Vec::new()
    }
}
