//! How the figures were made: what a panel is, its observation, and the looks.

use super::super::number::{counted, percent};
use super::super::results::Results;
use crate::stats::Looks;

/// The section of the method; empty for campaigns of whole runs.
pub(super) fn method(results: &Results) -> String {
    if !results.has_panels() {
        return String::new();
    }
    format!("## Method\n\n{PANEL}\n\n{OBSERVATION}\n\n{}", looks(results))
}

const PANEL: &str = "A *panel* is one block of one family. All variants, and a hidden copy of the baseline, are made ready \
                     together and anew for every block, verified, and measured in turns of the same length, in a fresh \
                     random order each round, on the same bed. Every round has a turn of the *control*, which is the bed \
                     without a subject.";

const OBSERVATION: &str = "What slows the machine down slows neighbouring turns alike, so that the ratio of two arms in a \
                           round varies far less than their rates. The observation of a block is the midmean of the \
                           logarithms of these ratios: the mean of the middle half. A quarter of the rounds can be \
                           arbitrarily wrong without carrying it away; for normally distributed rounds its variance is \
                           1 / 0.84 of the mean's, and for heavy tails, as rounds have them, it is smaller than the \
                           mean's. A round whose control was disturbed is left out for all variants; nothing is left out \
                           by its own value. The test is Student's t over the blocks.";

fn looks(results: &Results) -> String {
    let experiment = &results.campaign.experiment;
    let (alpha, margin) = (percent(experiment.analysis.alpha), percent(experiment.analysis.margin));
    let comparisons = counted(results.judged.comparisons.len() as u32, "comparison");
    format!(
        "The results are looked at after {} … blocks. Look k may spend 1 / (k (k + 1)) of the error rate, which is divided \
         evenly among {comparisons}. All looks together, however many, spend the whole, so that neither looking nor \
         going on with --resume raises the probability of a false verdict above {alpha}. *Better* and *worse* mean that the \
         interval excludes the margin of ±{margin}, *equivalent* that it lies within it, each for the whole loop and for \
         the subject's share of it.",
        first_looks(experiment.first_look())
    )
}

/// The first looks: "5, 7, 10, 14".
fn first_looks(first: u32) -> String {
    let looks = Looks::starting_at(first);
    let blocks = std::iter::successors(Some(looks.next_after(0)), |blocks| Some(looks.next_after(*blocks)));
    blocks.take(4).map(|blocks| blocks.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_looks_are_listed() {
        assert_eq!(super::first_looks(5), "5, 7, 10, 14");
        assert_eq!(super::first_looks(1), "2, 3, 4, 5");
    }
}
