//! The folder of a profile.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use fullview_bench::settings::Settings;
use fullview_lab::{Experiment, Family};
use fullview_profile::graph;
use fullview_router::error::BadInput;

use super::measured::MeasuredProfile;
use super::page::{ProfileDocument, difference, picture};

/// Makes the folder, or makes sure that it may be written to.
pub fn prepare(folder: &Path, force: bool) -> anyhow::Result<()> {
    let is_free = force || !folder.join("README.md").exists();
    ensure!(
        is_free,
        BadInput(format!(
            "{}: there is a profile already; --force replaces it, --out chooses another",
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
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("{}: cannot write", path.display()))
    };
    for one in profiles {
        let variant = &experiment.variants[one.variant];
        let family =
            families.iter().find(|family| family.name == one.family).map_or("", |family| &family.title);
        let title = format!("{}, {family}", variant.label);
        let stacks = &one.profile.stacks;
        let file = picture(&one.family, &variant.name);
        write(&file, &graph::flame(&title, stacks)?)?;
        write(&file.replace(".svg", ".folded"), stacks.to_string().as_bytes())?;
        let is_baseline =
            |other: &&MeasuredProfile| other.variant == experiment.baseline() && other.family == one.family;
        if let Some(baseline) =
            profiles.iter().find(is_baseline).filter(|_| one.variant != experiment.baseline())
        {
            let svg = graph::difference(&title, &baseline.profile.stacks, stacks)?;
            write(&difference(&one.family, &variant.name), &svg)?;
        }
    }
    write("report.json", serde_json::to_string_pretty(document)?.as_bytes())?;
    write("README.md", document.page()?.as_bytes())
}
