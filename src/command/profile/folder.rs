//! The folder of a profile.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use fullview_bench::settings::Settings;
use fullview_lab::{Experiment, Family};
use fullview_router::error::BadInput;

use super::measured::MeasuredProfile;
use super::page::{ProfileDocument, difference, picture};
use crate::command::profile_parts::{Baseline, ProfileFiles, write_file, write_profile};

/// Makes the folder, or makes sure that it may be written to.
pub fn prepare(folder: &Path, force: bool) -> anyhow::Result<()> {
    let is_free = force || !["README.md", "report.json"].iter().any(|name| folder.join(name).exists());
    ensure!(
        is_free,
        BadInput(format!(
            "{}: there is a README.md or a report.json already; --force replaces them, --out chooses another folder",
            folder.display()
        ))
    );
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))
}

/// Writes the page, the data, and for each profile the picture and the stacks that it is drawn from.
pub fn write(
    folder: &Path,
    experiment: &Experiment<Settings>,
    families: &[Family],
    profiles: &[MeasuredProfile],
    document: &ProfileDocument,
) -> anyhow::Result<()> {
    for one in profiles {
        let variant = &experiment.variants[one.variant];
        let family =
            families.iter().find(|family| family.name == one.family).map_or("", |family| &family.title);
        let (graph, difference) =
            (picture(&one.family, &variant.name), difference(&one.family, &variant.name));
        let stacks = graph.replace(".svg", ".folded");
        let is_compared = one.variant != experiment.baseline();
        let files =
            ProfileFiles { graph: &graph, stacks: &stacks, difference: is_compared.then_some(&difference) };
        let is_baseline =
            |other: &&MeasuredProfile| other.variant == experiment.baseline() && other.family == one.family;
        let baseline = profiles.iter().find(is_baseline).map(|other| Baseline {
            name: &experiment.variants[other.variant].label,
            stacks: &other.profile.stacks,
        });
        let title = format!("{}, {family}", variant.label);
        write_profile(folder, &title, &files, &one.profile.stacks, baseline.as_ref())?;
    }
    let data = serde_json::to_string_pretty(document)?;
    write_file(&folder.join("report.json"), data.as_bytes())?;
    write_file(&folder.join("README.md"), document.page()?.as_bytes())
}
