//! Which run each line of a published column is of.

use fullview_lab::ministat::general;
use serde::Serialize;

use crate::folder::RawRun;

/// The medians of a column beside those of the raw logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PublishedMedians {
    /// How many have a raw log.
    pub compared: usize,
    pub differing: Vec<DifferingMedian>,
    /// Whether the lines of the column are in the order of the names 1, 10, 2, … and not of the runs.
    #[serde(rename = "column_by_name")]
    pub by_name: bool,
    /// Lines and runs, if they differ in number: it is not known which line is of which run.
    pub unequal: Option<[usize; 2]>,
}

/// A published median that is not the one of the raw log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DifferingMedian {
    pub run: u32,
    pub published: f64,
    pub raw: f64,
}

/// A run, and what its log says; nothing of a log that was skipped.
type Line = (u32, Option<f64>);

/// All runs of a series in the order of their numbers.
pub struct RunLines(Vec<Line>);

impl RunLines {
    pub fn new(runs: &[RawRun], unread: impl Iterator<Item = u32>) -> RunLines {
        let read = runs.iter().map(|run| (run.name.run, Some(run.value)));
        let mut lines: Vec<Line> = read.chain(unread.map(|run| (run, None))).collect();
        lines.sort_by_key(|(run, _)| *run);
        RunLines(lines)
    }

    /// The same in the order in which a shell lists the files: 1, 10, 2, …
    fn by_name(&self) -> RunLines {
        let mut lines = self.0.clone();
        lines.sort_by_key(|(run, _)| run.to_string());
        RunLines(lines)
    }

    /// Whether these are the medians of a column in the order of the names.
    pub fn is_column_by_name(&self, published: &[f64]) -> bool {
        self.by_name().is_column(published)
    }

    fn is_column(&self, published: &[f64]) -> bool {
        self.0.len() == published.len() && self.differing(published).is_empty()
    }

    /// Line for line: a run whose log was skipped has its line too.
    pub fn compare(&self, published: &[f64]) -> PublishedMedians {
        if self.0.len() != published.len() {
            let unequal = Some([published.len(), self.0.len()]);
            return PublishedMedians { unequal, ..PublishedMedians::default() };
        }
        let compared = self.0.iter().filter(|(_, raw)| raw.is_some()).count();
        let differing = self.differing(published);
        let by_name = !differing.is_empty() && self.is_column_by_name(published);
        let differing = if by_name { Vec::new() } else { differing };
        PublishedMedians { compared, differing, by_name, unequal: None }
    }

    fn differing(&self, published: &[f64]) -> Vec<DifferingMedian> {
        let pairs = self.0.iter().zip(published);
        let medians = pairs.filter_map(|((run, raw), published)| {
            Some(DifferingMedian { run: *run, published: *published, raw: (*raw)? })
        });
        medians.filter(|median| printed(median.raw) != printed(median.published)).collect()
    }
}

/// The digits that ministat prints, and so the published medians have.
fn printed(value: f64) -> String {
    general(value, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[Line]) -> RunLines {
        RunLines(lines.to_vec())
    }

    #[test]
    fn a_run_whose_log_was_skipped_keeps_its_line() {
        let runs = lines(&[(1, Some(10.0)), (2, None), (3, Some(30.0)), (4, Some(41.0))]);
        let found = runs.compare(&[10.0, 20.0, 30.0, 40.0]);
        let differing = vec![DifferingMedian { run: 4, published: 40.0, raw: 41.0 }];
        assert_eq!(found, PublishedMedians { compared: 3, differing, ..PublishedMedians::default() });
    }

    #[test]
    fn other_numbers_of_lines_and_runs_are_not_compared() {
        let found = lines(&[(1, Some(10.0)), (3, Some(30.0))]).compare(&[10.0, 20.0, 30.0]);
        assert_eq!(found, PublishedMedians { unequal: Some([3, 2]), ..PublishedMedians::default() });
    }

    #[test]
    fn lines_in_the_order_of_names_are_found_also_beside_a_skipped_log() {
        let runs = lines(&[(1, Some(1.0)), (2, Some(2.0)), (9, None), (10, Some(10.0))]);
        let found = runs.compare(&[1.0, 10.0, 2.0, 9.0]);
        assert!(found.by_name && found.differing.is_empty() && found.compared == 3, "{found:?}");
    }
}
