//! What agents on this machine have changed, in files, so that a killed agent's changes can be put back.
//!
//! Each network namespace has a folder: hosts in namespaces share files, and not their settings. `/run` is empty after a
//! restart of the machine, as are the settings. A file is locked for as long as its process runs.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

const FOLDERS: &str = "/run/fullview-testbed";
/// The lock of all that add and remove journals.
const LOCK: &str = "lock";

/// A journal, and the lock on it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    pub fn create() -> io::Result<Journal> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (folder, _changing) = locked_folder()?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number:06}.jsonl", std::process::id()));
        let file = File::options().create(true).append(true).open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        Ok(Journal { path, file })
    }

    /// Writes what undoes a change, before the change is made.
    pub fn append(&mut self, undo: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(undo)?;
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// Removes the journal of changes that were put back.
    pub fn remove(self) {
        // If it stays, the same is put back once more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Hands what dead processes of this namespace recorded to a function, the newest first, and removes their journals unless
/// this is a dry run.
pub fn of_ended<U: DeserializeOwned>(dry_run: bool, mut each: impl FnMut(U)) -> io::Result<()> {
    if !folder()?.exists() {
        return Ok(());
    }
    let (folder, _changing) = locked_folder()?;
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl") && has_ended(path));
    paths.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).and_then(|data| data.modified()).ok()));
    for path in paths {
        // A line that was cut off belongs to a change that was not made.
        let text = fs::read_to_string(&path)?;
        text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).for_each(&mut each);
        if !dry_run {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn has_ended(path: &Path) -> bool {
    File::options().append(true).open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// The folder of this network namespace.
fn folder() -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    Ok(Path::new(FOLDERS).join(namespace.to_string()))
}

/// The same, alone among all processes while the file is open.
fn locked_folder() -> io::Result<(PathBuf, File)> {
    let folder = folder()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let owner = fs::symlink_metadata(&folder)?;
    if owner.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("{} belongs to another user", folder.display())));
    }
    let changing = File::options().create(true).append(true).open(folder.join(LOCK))?;
    changing.lock()?;
    Ok((folder, changing))
}
