//! The pictures of profiles, in the folder of the report.

use std::fs;
use std::path::Path;

use anyhow::Context;
use fullview_profile::graph;

use super::document::{DeviceProfile, MadeProfile, ProfilesDocument, baseline};
use super::window::WindowProfile;

/// Writes for each profile the graph and the stacks that it is drawn from, and its difference from the baseline.
pub fn write(folder: &Path, made: &[MadeProfile], document: &ProfilesDocument) -> anyhow::Result<()> {
    let Some((baseline_name, baseline)) = baseline(made) else { return Ok(()) };
    let with_profile = made.iter().filter_map(|(_, one)| one.as_ref().ok());
    for (entry, one) in document.profiles.iter().zip(with_profile) {
        let stacks = &one.profile.stacks;
        write_file(&folder.join(&entry.graph), &graph::flame(&title(entry, one), stacks)?)?;
        write_file(&folder.join(&entry.stacks), stacks.to_string().as_bytes())?;
        if let Some(difference) = &entry.difference {
            let title = format!("{}, compared with {baseline_name}", title(entry, one));
            let svg = graph::difference(&title, &baseline.profile.stacks, stacks)?;
            write_file(&folder.join(difference), &svg)?;
        }
    }
    Ok(())
}

fn title(entry: &DeviceProfile, one: &WindowProfile) -> String {
    format!("{} at {:.1} thousand packets a second", entry.device, one.load / 1000.0)
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("{}: cannot write", path.display()))
}
