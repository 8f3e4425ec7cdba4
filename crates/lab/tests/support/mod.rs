//! Real data that is not part of the project: it lies in `../shared` beside the workspace, where there is any.

use std::path::{Path, PathBuf};

/// The path of a file or folder of the shared data; `None`, with a printed line, where this checkout has no such data.
///
/// # Panics
/// With `CI=true`, when the shared folder is there and the file is not: a check that was meant to run would not.
pub fn shared(relative: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = folder.join(relative);
    if path.exists() {
        return Some(path);
    }
    assert!(!(in_ci() && folder.exists()), "{} is missing from the shared data", path.display());
    println!("skipped: there is no {}", path.display());
    None
}

/// Whether this runs where nothing may be skipped silently.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
