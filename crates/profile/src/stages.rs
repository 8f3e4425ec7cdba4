//! Where the time goes, by stages of the work.

use serde::Serialize;

use crate::stacks::Stacks;
use crate::symbols::Function;
pub use crate::symbols::KERNEL;

/// The code of a stage, as a part of the paths of its sources or [`KERNEL`], and what the stage does. The first that fits
/// counts.
pub type StageNames = [(&'static str, &'static str)];

/// A stage's part of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageShare {
    /// What it does.
    pub stage: String,
    /// Its samples, as a share of all.
    pub share: f64,
}

/// Time that no stage has.
pub const OTHER: &str = "other";

/// Gives each sample to the stage of its innermost function that belongs to one, so that what a stage calls is its own.
/// Returns the stages with samples, the largest first.
pub fn shares(stacks: &Stacks, stages: &StageNames) -> Vec<StageShare> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for (functions, count) in stacks.iter() {
        let stage = functions.iter().rev().find_map(|function| stage_of(function, stages)).unwrap_or(OTHER);
        match counts.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, sum)) => *sum += count,
            None => counts.push((stage, count)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let total = stacks.total().max(1) as f64;
    counts
        .into_iter()
        .map(|(stage, count)| StageShare { stage: stage.to_owned(), share: count as f64 / total })
        .collect()
}

fn stage_of(function: &Function, stages: &StageNames) -> Option<&'static str> {
    let file = function.file.as_deref()?;
    stages.iter().find(|(part, _)| file.contains(part)).map(|(_, stage)| *stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_of_a_stage_decides() {
        let function = |file: &&str| Function { name: "f".into(), file: Some((*file).to_owned()) };
        let stack = |files: &[&str], count| (files.iter().map(function).collect(), count);
        let stacks: Stacks = [
            stack(&["/r/src/run.rs", "/r/src/lookup/batch.rs", "/core/slice.rs"], 6),
            stack(&["/r/src/run.rs", "/r/src/parse.rs"], 3),
            stack(&["/main.rs"], 1),
        ]
        .into_iter()
        .collect();
        let stages = [("r/src/lookup", "lookup"), ("r/src/parse", "parse"), ("r/src", "the loop")];
        let shares = shares(&stacks, &stages);
        let plain: Vec<(&str, f64)> = shares.iter().map(|one| (one.stage.as_str(), one.share)).collect();
        assert_eq!(plain, [("lookup", 0.6), ("parse", 0.3), (OTHER, 0.1)]);
    }
}
