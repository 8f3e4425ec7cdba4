//! A graph of a report.

use fullview_lab::report::Distributions;

/// The kinds of files of each graph.
pub const KINDS: [&str; 2] = ["svg", "png"];

pub struct RatesGraph {
    /// The start of the names of its files.
    pub stem: String,
    pub drawing: Distributions,
}

impl RatesGraph {
    /// The name of its file.
    pub fn file(&self, kind: &str) -> String {
        format!("{}.{kind}", self.stem)
    }
}
