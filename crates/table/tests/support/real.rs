//! Real tables and traces, which are not part of the project.

use std::path::{Path, PathBuf};

/// The file `name` of the data folder beside the workspace; `None`, after a printed line, if there is no such file. In
/// CI a folder without the file is a failure.
pub fn data(name: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = shared.join("data").join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(!shared.exists() || std::env::var_os("CI").is_none(), "{} is missing", path.display());
    println!("skipped: no {}", path.display());
    None
}
