//! Reads inventory files.

use std::path::Path;

use fullview_router::text_file;

use super::error::RemoteError;
use super::wiring::Wiring;

/// Reads and checks an inventory. Paths in it are relative to its folder.
pub fn read_inventory(path: &Path) -> Result<Wiring, RemoteError> {
    let wrong = |problem: String| RemoteError::Inventory { path: path.into(), problem };
    let text = text_file::read(path).map_err(|error| wrong(format!("cannot read: {error}")))?;
    let mut inventory: super::inventory::Inventory =
        toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    inventory.ssh.config = inventory.ssh.config.map(|config| folder.join(config));
    for device in &mut inventory.devices {
        let files = std::mem::take(&mut device.files).into_iter();
        device.files = files.map(|(here, there)| (folder.join(here), there)).collect();
        device.placed_files().map_err(wrong)?;
    }
    Wiring::of(inventory).map_err(wrong)
}
