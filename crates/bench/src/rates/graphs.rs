//! All graphs of a report, and the files that reports have.

use super::convergence_graph::{self, convergence_graphs};
use super::failure::Failure;
use super::graph::{KINDS, RatesGraph};
use super::latency_graph::{self, latency_graphs};
use super::latency_level::LatencyLevel;
use super::result::RatesReport;
use super::turns;

pub fn graphs(report: &RatesReport) -> Vec<RatesGraph> {
    [latency_graphs(report), convergence_graphs(report)].into_iter().flatten().collect()
}

/// The files that a campaign before may have left, with the pictures of what this one does not measure.
pub fn result_files() -> Vec<String> {
    let levels = LatencyLevel::ALL.into_iter().map(latency_graph::stem);
    let stems = levels.chain(Failure::ALL.into_iter().map(convergence_graph::stem));
    let pictures = stems.flat_map(|stem| KINDS.map(|kind| format!("{stem}.{kind}")));
    ["README.md", "report.json", turns::FILE].map(str::to_owned).into_iter().chain(pictures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_all_kinds_are_results() {
        let files = result_files();
        for file in ["latency-pdr-10.svg", "latency-overload.png", "convergence-route.svg", "README.md"] {
            assert!(files.iter().any(|one| one == file), "{files:?}");
        }
    }
}
