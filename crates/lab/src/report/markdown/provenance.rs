//! The provenance of the figures, and the commands that make them again.

use crate::campaign::Measurements;
use crate::host::Provenance;
use crate::settings::OF_BUILD;

use super::super::machine;
use super::super::number::counted;
use super::super::results::Results;
use super::syntax::{fenced, shell_word};

pub(super) fn provenance(results: &Results) -> String {
    let Provenance { started, command, build, host, .. } = &results.campaign.provenance;
    let made = results.campaign.made() as u32;
    let records = match results.campaign.measured {
        Measurements::Runs(_) => format!(
            "[runs.jsonl](runs.jsonl): {} since {started}, each with its samples",
            counted(made, "run")
        ),
        Measurements::Panels(_) => format!(
            "[panels.jsonl](panels.jsonl): {} since {started}; `slices/` has every turn of each",
            counted(made, "panel")
        ),
    };
    let each = if results.has_panels() { "family" } else { "cell" };
    let seed = results.campaign.experiment.seed;
    let first = [
        records,
        "[campaign.toml](campaign.toml): the experiment with every setting".to_owned(),
        format!("seed {seed} of all random choices; every block contains each {each} once, in random order"),
    ];
    let facts = first.into_iter().chain(machine::build_facts(build)).chain(machine::facts(host));
    let list: String = facts.map(|fact| format!("  - {fact}\n")).collect();
    let command: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
    format!(
        "## Provenance\n\n{list}\nMeasured with:\n{}\n{}\nTo rebuild this page and its graph from the records, run in \
         this folder:\n{}",
        fenced(&command.join(" ")),
        repeated(results),
        fenced("fullview report ."),
    )
}

/// How to measure once more. The record of two builds is no experiment of one program.
fn repeated(results: &Results) -> String {
    let of_build = |set: &toml::Table| set.contains_key(OF_BUILD);
    if results.campaign.experiment.variants.iter().any(|variant| of_build(&variant.set)) {
        return "To repeat the measurement, run that command again where it was run, with both builds: `fullview bench` does \
                not read the record of two.\n"
            .into();
    }
    let command = fenced("fullview bench campaign.toml");
    format!("To repeat the measurement, on this or another machine, run in this folder:\n{command}")
}
