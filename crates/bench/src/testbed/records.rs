//! Records of what a process made outside of itself: namespaces, and folders of the programs that it starts.
//!
//! Each process that makes a test bed has a folder with its number, and a lock in it for as long as it runs. The kernel
//! releases the lock with the process, however it ends. A namespace is recorded with its inode before it has a name, so
//! that another one of the same name is not taken for it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::TestbedError;

/// Records of root, who alone makes namespaces.
const ROOTS: &str = "/run/fullview-lab";
/// The lock of the owner, and that of all who change the folder of folders.
const LOCK: &str = "lock";
const NAMESPACE: &str = "netns-";

/// The folder of all owners' folders.
pub struct Records {
    path: PathBuf,
    _changing: File,
}

/// A namespace as it is recorded.
pub struct RecordedNamespace {
    pub name: String,
    inode: u64,
}

impl Records {
    /// Opens the records, alone among all processes until this value is dropped.
    pub fn open() -> Result<Records, TestbedError> {
        let path = folder();
        let opened = make_private(&path).and_then(|()| {
            let changing = lock_file(&path)?;
            changing.lock()?;
            Ok(changing)
        });
        let changing = opened.map_err(|error| at(&path, error))?;
        Ok(Records { path, _changing: changing })
    }

    /// Makes the folder of this process, with its lock.
    pub fn add_owner(&self) -> Result<(PathBuf, File), TestbedError> {
        let path = self.path.join(std::process::id().to_string());
        let made = make_private(&path).and_then(|()| {
            let lock = lock_file(&path)?;
            lock.try_lock().map_err(io::Error::from)?;
            Ok(lock)
        });
        Ok((path.clone(), made.map_err(|error| at(&path, error))?))
    }

    /// The folders of processes that have ended.
    pub fn of_ended(&self) -> Result<Vec<PathBuf>, TestbedError> {
        let entries = fs::read_dir(&self.path).map_err(|error| at(&self.path, error))?;
        let mut folders: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(|path| has_ended(path)).collect();
        folders.sort();
        Ok(folders)
    }
}

impl RecordedNamespace {
    /// Writes the record of a namespace that has no name yet.
    pub fn write(owner: &Path, name: &str, inode: u64) -> Result<(), TestbedError> {
        let path = record_path(owner, name);
        fs::write(&path, inode.to_string()).map_err(|error| at(&path, error))
    }

    /// Removes the record of a namespace that is no more.
    pub fn remove(owner: &Path, name: &str) -> io::Result<()> {
        fs::remove_file(record_path(owner, name))
    }

    /// The namespaces that an owner recorded.
    pub fn all(owner: &Path) -> Vec<RecordedNamespace> {
        let entries = fs::read_dir(owner).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.filter_map(|entry| Self::read(&entry.path())).collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    fn read(path: &Path) -> Option<RecordedNamespace> {
        let name = path.file_name()?.to_str()?.strip_prefix(NAMESPACE)?.to_owned();
        let inode = fs::read_to_string(path).ok()?.parse().ok()?;
        Some(RecordedNamespace { name, inode })
    }

    /// Whether the namespace that has this name now is the recorded one; nothing if there is none.
    pub fn is_there(&self) -> Option<bool> {
        let now = fs::metadata(Path::new("/run/netns").join(&self.name)).ok()?;
        Some(now.ino() == self.inode)
    }
}

fn record_path(owner: &Path, name: &str) -> PathBuf {
    owner.join(format!("{NAMESPACE}{name}"))
}

fn folder() -> PathBuf {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => ROOTS.into(),
        Some(runtime) => Path::new(&runtime).join("fullview-lab"),
        None => std::env::temp_dir().join(format!("fullview-lab-{}", user.as_raw())),
    }
}

/// Makes a folder for this user alone. One that another user made is refused: it could name other people's namespaces.
fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let owner = fs::symlink_metadata(path)?;
    let is_ours = owner.is_dir() && owner.uid() == rustix::process::geteuid().as_raw();
    let refused = || io::Error::other("it belongs to another user; remove it");
    if is_ours { Ok(()) } else { Err(refused()) }
}

fn lock_file(folder: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(folder.join(LOCK))
}

/// Whether this is the folder of a process that has ended.
fn has_ended(path: &Path) -> bool {
    let is_owner = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).is_some();
    let lock = || File::options().append(true).open(path.join(LOCK));
    // If the lock fails for another reason, it is unknown whether the owner lives.
    is_owner && lock().is_ok_and(|lock| lock.try_lock().is_ok())
}

fn at(path: &Path, error: io::Error) -> TestbedError {
    TestbedError::Record { path: path.into(), error }
}
