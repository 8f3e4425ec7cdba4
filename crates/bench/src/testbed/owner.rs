//! The folder of this process, while it has a test bed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::error::TestbedError;
use super::leftovers::remove_recorded;
use super::records::{RecordedNamespace, Records};

static CURRENT: Mutex<Weak<OwnerFolder>> = Mutex::new(Weak::new());

/// A folder that is removed when nothing of the test bed is left, or by the next process that makes one. It stays with the
/// records of namespaces that could not be removed.
#[derive(Debug)]
pub struct OwnerFolder {
    path: PathBuf,
    _alive: File,
}

impl OwnerFolder {
    /// The folder of this process. If it is made, what ended processes left behind is removed first.
    pub fn current() -> Result<Arc<OwnerFolder>, TestbedError> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = current.upgrade() {
            return Ok(folder);
        }
        let made = Arc::new(OwnerFolder::make()?);
        *current = Arc::downgrade(&made);
        Ok(made)
    }

    fn make() -> Result<OwnerFolder, TestbedError> {
        let records = Records::open()?;
        // What cannot be removed does not prevent a new test bed.
        let _ = remove_recorded(&records, false);
        let (path, alive) = records.add_owner()?;
        Ok(OwnerFolder { path, _alive: alive })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it that is removed with its value.
    pub fn folder(&self, prefix: &str) -> Result<tempfile::TempDir, TestbedError> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(&self.path);
        made.map_err(|error| TestbedError::Record { path: self.path.clone(), error })
    }
}

impl Drop for OwnerFolder {
    fn drop(&mut self) {
        if RecordedNamespace::all(&self.path).is_empty() {
            // A failure cannot be reported from here; the next process removes it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_stays_with_the_record_of_a_namespace() {
        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("1");
        let owner = || {
            fs::create_dir_all(&path).expect("a folder");
            OwnerFolder { path: path.clone(), _alive: File::create(path.join("lock")).expect("a file") }
        };
        let folder = owner();
        RecordedNamespace::write(&path, "fv1left", 7).expect("a record");
        drop(folder);
        assert!(path.exists(), "the next process has to find the record");
        RecordedNamespace::remove(&path, "fv1left").expect("a record");
        drop(owner());
        assert!(!path.exists());
    }
}
