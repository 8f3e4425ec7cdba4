//! The pictures of profiles, in the folder of the report.

use std::path::Path;

use super::document::{DeviceProfile, MadeProfile, ProfilesDocument, baseline};
use super::window::WindowProfile;
use crate::command::profile_parts::{Baseline, ProfileFiles, write_profile};

/// Writes for each profile the graph and the stacks that it is drawn from, and its difference from the baseline.
pub fn write(folder: &Path, made: &[MadeProfile], document: &ProfilesDocument) -> anyhow::Result<()> {
    let Some((name, baseline)) = baseline(made) else { return Ok(()) };
    let baseline = Baseline { name, stacks: &baseline.profile.stacks };
    let with_profile = made.iter().filter_map(|(_, one)| one.as_ref().ok());
    for (entry, one) in document.profiles.iter().zip(with_profile) {
        let DeviceProfile { graph, stacks, difference, .. } = entry;
        let files = ProfileFiles { graph, stacks, difference: difference.as_deref() };
        write_profile(folder, &title(entry, one), &files, &one.profile.stacks, Some(&baseline))?;
    }
    Ok(())
}

fn title(entry: &DeviceProfile, one: &WindowProfile) -> String {
    format!("{} at {:.1} thousand packets a second", entry.device, one.load / 1000.0)
}
