//! Writes the report's files.

use std::fs;
use std::path::Path;

use crate::error::ImportError;
use crate::graph::chart;
use crate::import::Import;
use crate::markdown::markdown;

/// Writes `report.md`, `graph.svg`, `graph.png` and `report.json` into a folder, which has to be empty or absent unless
/// `force` replaces what it has of these.
pub fn write(import: &Import, folder: &Path, force: bool) -> Result<(), ImportError> {
    if folder.is_file() {
        return Err(ImportError::NoFolder { path: folder.into() });
    }
    let occupied = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if occupied && !force {
        return Err(ImportError::NotEmpty { path: folder.into() });
    }
    let chart = chart(import);
    let svg = chart.svg().map_err(ImportError::Chart)?;
    let png = chart.png().map_err(ImportError::Chart)?;
    let (text, figures) = (markdown(import), json(import)?);
    let files: [(&str, &[u8]); 4] = [
        ("report.md", text.as_bytes()),
        ("graph.svg", svg.as_bytes()),
        ("graph.png", &png),
        ("report.json", figures.as_bytes()),
    ];
    write_files(folder, &files)
}

pub(crate) fn write_files(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), ImportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ImportError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    files.iter().try_for_each(|(name, bytes)| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(failed(&path))
    })
}

/// The figures for scripts.
pub fn json(import: &Import) -> Result<String, ImportError> {
    Ok(serde_json::to_string_pretty(import)? + "\n")
}
