//! Real data, such as full routing tables. The project reads it from the folder `shared` beside the workspace, and does
//! not contain it.

use std::path::{Path, PathBuf};

/// Returns the path of a file or folder below `../shared/data`, if it exists.
pub fn find(name: &str) -> Option<PathBuf> {
    Some(folder().join("data").join(name)).filter(|path| path.exists())
}

/// As [`find`], for a test that is skipped without the folder `shared`. If the folder exists without this data, the test
/// fails.
pub fn data(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        assert!(!folder().exists(), "{name} is missing in {}/data", folder().display());
        println!("skipped: no {}/data/{name}", folder().display());
    }
    found
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}
