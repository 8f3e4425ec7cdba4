//! What the pages and folders of all profiles have in common.

use std::fs;
use std::path::Path;

use anyhow::Context;
use fullview_profile::stages::{OTHER, StageShare};
use fullview_profile::{Stacks, graph};

/// The files of one profile.
pub struct ProfileFiles<'f> {
    pub graph: &'f str,
    pub stacks: &'f str,
    /// The difference from a baseline, unless it is that itself.
    pub difference: Option<&'f str>,
}

/// What a profile is compared with.
pub struct Baseline<'b> {
    pub name: &'b str,
    pub stacks: &'b Stacks,
}

/// Writes a flame graph, the stacks that it is drawn from, and the graph of its difference.
pub fn write_profile(
    folder: &Path,
    title: &str,
    files: &ProfileFiles<'_>,
    stacks: &Stacks,
    baseline: Option<&Baseline<'_>>,
) -> anyhow::Result<()> {
    write_file(&folder.join(files.graph), &graph::flame(title, stacks)?)?;
    write_file(&folder.join(files.stacks), stacks.to_string().as_bytes())?;
    let Some((file, Baseline { name, stacks: before })) = files.difference.zip(baseline) else {
        return Ok(());
    };
    let title = format!("{title}, compared with {name}");
    write_file(&folder.join(file), &graph::difference(&title, before, stacks)?)
}

pub fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("{}: cannot write", path.display()))
}

/// All stages of these profiles: those of the first one by their size, then those that only others have; what no stage has
/// stands last.
pub fn stages_of<'p>(profiles: impl Iterator<Item = &'p [StageShare]>) -> Vec<String> {
    let mut stages: Vec<String> = Vec::new();
    for stage in profiles.flatten() {
        if !stages.contains(&stage.stage) {
            stages.push(stage.stage.clone());
        }
    }
    stages.sort_by_key(|stage| stage == OTHER);
    stages
}

/// The share of a stage, if the profile has it.
pub fn share_of(stages: &[StageShare], stage: &str) -> Option<String> {
    stages.iter().find(|known| known.stage == stage).map(|known| percent(known.share))
}

/// A row of a table of Markdown; cells without a value have a dash.
pub fn row(name: &str, cells: impl Iterator<Item = Option<String>>) -> String {
    let cells = cells.map(|cell| cell.unwrap_or_else(|| "–".into()));
    format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The line under the titles of so many columns of numbers.
pub fn rule(columns: usize) -> String {
    format!("| --- |{}\n", " ---: |".repeat(columns))
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
