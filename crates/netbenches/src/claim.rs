//! What the prose beside a block of two sets claims, against what the block says. Only claims that can be read in one way
//! are checked: one percentage with its sign, or that there is no difference.

use serde::Serialize;

use crate::block::PublishedBlock;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The line of the prose, from 1.
    pub line: usize,
    pub prose: String,
    /// The relative difference of the block's means.
    pub difference: f64,
    pub contradiction: Option<String>,
}

pub fn claims(block: &PublishedBlock) -> Vec<Claim> {
    let Some(difference) = difference(block) else { return Vec::new() };
    let after = block.after.text.strip_prefix("=>").map(|after| (block.after.line, after.trim()));
    // What stands after the block before is that block's conclusion.
    let before = Some(&block.before).filter(|before| !before.text.trim_start().starts_with("=>"));
    let before = before.map(|before| (before.line, before.text.as_str()));
    let prose = before.into_iter().chain(after);
    let claim = |(line, prose): (usize, &str)| {
        let contradiction = contradiction(block, prose, difference)?;
        Some(Claim { line, prose: prose.into(), difference: difference.mean, contradiction })
    };
    prose.filter_map(claim).collect()
}

#[derive(Clone, Copy)]
struct Difference {
    mean: f64,
    median: f64,
}

/// The difference of a block of two sets.
fn difference(block: &PublishedBlock) -> Option<Difference> {
    let rows = block.rows();
    let [reference, set] = &rows[..] else { return None };
    let of = |column: usize| {
        let ratio = set.get(column)?.parse::<f64>().ok()? / reference.get(column)?.parse::<f64>().ok()? - 1.0;
        Some(ratio).filter(|ratio| ratio.is_finite())
    };
    Some(Difference { mean: of(4)?, median: of(3)? })
}

/// The outer `None`: the prose claims nothing that can be checked.
fn contradiction(block: &PublishedBlock, prose: &str, difference: Difference) -> Option<Option<String>> {
    let proven = block.text.lines().any(|line| line.starts_with("Difference at"));
    let percent = 100.0 * difference.mean;
    if let Some(claimed) = percentage(prose) {
        // A claim may be about the means or about the medians.
        let other_sign = [difference.mean, difference.median].iter().all(|of| of * claimed < 0.0);
        let contradiction = format!("the prose says {claimed:+} %, and the block says {percent:+.2} %");
        return Some(other_sign.then_some(contradiction));
    }
    let lower = prose.to_lowercase();
    let same = lower.contains("no difference") || lower.contains("same performance");
    let contradiction =
        format!("the prose says that there is none, and the block proves a difference of {percent:+.2} %");
    same.then(|| proven.then_some(contradiction))
}

/// The only percentage of a text, if it has a sign. Within a word or a number the same letters are a range, or a hyphen.
fn percentage(prose: &str) -> Option<f64> {
    let mut found = prose.match_indices('%').map(|(at, _)| prose[..at].trim_end());
    let (before, None) = (found.next()?, found.next()) else { return None };
    let start = before.rfind(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
    let (words, sign) = before.split_at(start);
    let is_sign = sign.starts_with(['+', '-']) && !words.ends_with(|letter| !is_space(letter));
    is_sign.then(|| sign.parse().ok()).flatten()
}

/// What may stand before a sign.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || letter == '('
}
