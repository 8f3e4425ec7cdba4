//! Real data, such as full routing tables. The project reads it from the folder `shared` beside the workspace, and does
//! not contain it.

use std::path::{Path, PathBuf};

use crate::requirements::in_ci;

/// Returns the path of a file or folder below `../shared/data`, if it exists.
pub fn find(name: &str) -> Option<PathBuf> {
    Some(folder().join("data").join(name)).filter(|path| path.exists())
}

/// As [`find`], for a test that is skipped without this data: prints what is missing. In CI, the test fails if the
/// folder `shared` exists without the data.
pub fn data(name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        assert!(!folder().exists() || !in_ci(), "{name} is missing in {}/data", folder().display());
        println!("skipped: no {}/data/{name}", folder().display());
    }
    found
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}
