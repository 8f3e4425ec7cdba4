//! The program of a commit that several runs may use at once. The last of them removes it, unless a run was asked to keep it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fullview_router::log;

/// Waits until no other run has this lock, which this run has while the file is open.
pub fn lock(path: &Path) -> anyhow::Result<File> {
    let name = || path.display().to_string();
    let file = File::options().create(true).append(true).open(path).with_context(name)?;
    if file.try_lock().is_err() {
        log::line(&format!("another run has {}: this one waits for it", name()));
        file.lock().with_context(name)?;
    }
    Ok(file)
}

/// The lock of a program: a run that has it makes, takes or removes the program, and no other run does.
pub struct LockedProgram {
    path: PathBuf,
    lock_path: PathBuf,
    _alone: File,
}

impl LockedProgram {
    pub fn new(path: PathBuf, lock_path: PathBuf) -> anyhow::Result<Self> {
        let _alone = lock(&lock_path)?;
        Ok(Self { path, lock_path, _alone })
    }

    /// The program that is there: of an earlier run, or of one that uses it.
    pub fn found(&self, keep: bool) -> anyhow::Result<Option<UsedProgram>> {
        if !self.path.exists() {
            return Ok(None);
        }
        log::line(&format!("{} is of an earlier run, or another one uses it", self.path.display()));
        if keep {
            self.keep()?;
        }
        self.used().map(Some)
    }

    /// Makes it of the file that was built.
    pub fn copied(&self, built: &Path, keep: bool) -> anyhow::Result<UsedProgram> {
        match keep {
            true => self.keep()?,
            false => drop(File::create(temporary(&self.path)).with_context(|| self.name())?),
        }
        copy_whole(built, &self.path).with_context(|| self.name())?;
        self.used()
    }

    fn keep(&self) -> anyhow::Result<()> {
        match fs::remove_file(temporary(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).with_context(|| self.name()),
            _ => Ok(()),
        }
    }

    fn used(&self) -> anyhow::Result<UsedProgram> {
        let in_use = File::open(&self.path).with_context(|| self.name())?;
        in_use.lock_shared().with_context(|| self.name())?;
        Ok(UsedProgram { path: self.path.clone(), lock_path: self.lock_path.clone(), in_use })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A program that no run removes while this value lives.
pub struct UsedProgram {
    path: PathBuf,
    lock_path: PathBuf,
    /// The program, with a lock that all runs share which use it.
    in_use: File,
}

impl UsedProgram {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn remove_if_last(&self) {
        let marker = temporary(&self.path);
        if marker.exists() && self.in_use.try_lock().is_ok() {
            // What cannot be removed stays where no further run is disturbed by it.
            let _ = fs::remove_file(&self.path).and_then(|()| fs::remove_file(marker));
        }
    }
}

impl Drop for UsedProgram {
    fn drop(&mut self) {
        let Ok(alone) = lock(&self.lock_path) else { return };
        self.remove_if_last();
        // While this run still has the other lock, so that a run that ends next sees that it is the last one.
        let _ = self.in_use.unlock();
        drop(alone);
    }
}

/// The file beside a program that says that no run was asked to keep it. One without that file is never removed.
fn temporary(program: &Path) -> PathBuf {
    program.with_added_extension("temporary")
}

/// Copies a program so that its final name is that of a whole file only: a later run takes it for one that was kept.
fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_added_extension("partial");
    let copied = fs::copy(from, &partial)
        .and_then(|_| File::open(&partial)?.sync_all())
        .and_then(|()| fs::rename(&partial, to));
    if copied.is_err() {
        // If this fails too, a partial file stays that nothing reads.
        let _ = fs::remove_file(&partial);
    }
    copied
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// The device has no space for the copy, of which a part is written.
    #[test]
    fn a_copy_that_fails_leaves_nothing_that_a_later_run_takes_for_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let [from, to] = ["built", "fullview-0123"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("/dev/full", dir.path().join("fullview-0123.partial")).unwrap();
        fs::write(&from, "a program").unwrap();
        assert!(copy_whole(&from, &to).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the program that was built");
        copy_whole(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"a program");
    }

    /// What a run does that needs the program of a commit.
    fn run(dir: &TempDir, keep: bool) -> UsedProgram {
        let [built, path, lock_path] = ["built", "program", "lock"].map(|name| dir.path().join(name));
        fs::write(&built, "a program").unwrap();
        let locked = LockedProgram::new(path, lock_path).unwrap();
        let found = locked.found(keep).unwrap();
        found.unwrap_or_else(|| locked.copied(&built, keep).unwrap())
    }

    /// Whether the program is there, and what says that it will be removed.
    fn left(dir: &TempDir) -> [bool; 2] {
        ["program", "program.temporary"].map(|name| dir.path().join(name).exists())
    }

    #[test]
    fn the_last_run_of_those_that_share_a_program_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        for first_ends_first in [true, false] {
            let (first, second) = (run(&dir, false), run(&dir, false));
            let [before, last] = if first_ends_first { [first, second] } else { [second, first] };
            drop(before);
            assert!(last.path().exists());
            drop(last);
            assert_eq!(left(&dir), [false, false]);
        }
    }

    #[test]
    fn a_program_stays_if_one_run_was_asked_to_keep_it() {
        for keeps in [[true, false], [false, true]] {
            let dir = tempfile::tempdir().unwrap();
            let [first, second] = keeps.map(|keep| run(&dir, keep));
            drop((first, second));
            assert_eq!(left(&dir), [true, false], "{keeps:?}");
            drop(run(&dir, false));
            assert_eq!(left(&dir), [true, false], "a later run leaves it");
        }
    }

    #[test]
    fn the_program_of_a_run_that_was_killed_is_removed_by_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        ["program", "program.temporary"]
            .iter()
            .for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        drop(run(&dir, false));
        assert_eq!(left(&dir), [false, false]);
    }
}
