//! What processes left behind that were killed.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::command::run;
use super::error::TestbedError;
use super::marker::is_marked;
use super::records::{RecordedNamespace, Records};

/// What is left behind, and whether it can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverKind {
    /// A network namespace, with its interfaces
    Namespace,
    /// A process in such a namespace
    Process,
    /// The records and sockets of a process that has ended
    Folder,
    /// A setting of a machine, with what puts it back
    Setting,
    /// A file that was laid onto a device under test
    File,
    /// A namespace that has the name of a recorded one, and is another one: it stays
    NotOurs,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub kind: LeftoverKind,
    pub name: String,
}

/// Finds what ended processes left behind, and removes it unless this is a dry run.
pub fn remove_leftovers(dry_run: bool) -> Result<Vec<Leftover>, TestbedError> {
    remove_recorded(&Records::open()?, dry_run)
}

/// The same, by records that are open. The error is the first one; everything else has been removed then.
pub fn remove_recorded(records: &Records, dry_run: bool) -> Result<Vec<Leftover>, TestbedError> {
    let mut found = Vec::new();
    let folders = records.of_ended()?;
    // Each of them, also after an error.
    let removed: Vec<Result<(), TestbedError>> =
        folders.iter().map(|folder| remove_of_owner(folder, dry_run, &mut found)).collect();
    removed.into_iter().collect::<Result<(), TestbedError>>()?;
    Ok(found)
}

/// Removes what one owner left behind. Its folder stays if a namespace of it does.
fn remove_of_owner(folder: &Path, dry_run: bool, found: &mut Vec<Leftover>) -> Result<(), TestbedError> {
    let namespaces = RecordedNamespace::all(folder);
    let removed: Vec<Result<(), TestbedError>> =
        namespaces.iter().map(|namespace| remove_namespace(namespace, dry_run, found)).collect();
    removed.into_iter().collect::<Result<(), TestbedError>>()?;
    found.push(Leftover { kind: LeftoverKind::Folder, name: folder.display().to_string() });
    if dry_run { Ok(()) } else { remove_folder(folder) }
}

fn remove_namespace(
    namespace: &RecordedNamespace,
    dry_run: bool,
    found: &mut Vec<Leftover>,
) -> Result<(), TestbedError> {
    let name = namespace.name.clone();
    let Some(is_same) = namespace.is_there() else { return Ok(()) };
    if !(is_same && is_marked(&name)?) {
        found.push(Leftover { kind: LeftoverKind::NotOurs, name });
        return Ok(());
    }
    for process in processes(&name) {
        let id = process.as_raw_nonzero();
        found.push(Leftover { kind: LeftoverKind::Process, name: format!("{id} in {name}") });
        if !dry_run {
            // It may have ended meanwhile.
            let _ = kill_process(process, Signal::KILL);
        }
    }
    if !dry_run {
        run("ip", &["netns", "delete", &name], "")?;
    }
    found.push(Leftover { kind: LeftoverKind::Namespace, name });
    Ok(())
}

/// The processes in a namespace. They are not listed if `ip` cannot; the namespace is removed all the same.
fn processes(namespace: &str) -> Vec<Pid> {
    let listed = Command::new("ip").args(["netns", "pids", namespace]).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
}

fn remove_folder(folder: &Path) -> Result<(), TestbedError> {
    fs::remove_dir_all(folder).map_err(|error| TestbedError::Record { path: folder.into(), error })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use fullview_testnet::may_run;

    use super::*;

    /// A file in place of a namespace, which `ip` can neither show nor delete.
    #[test]
    fn the_record_of_a_namespace_that_cannot_be_removed_stays() {
        if !may_run(&["ip"]) {
            return;
        }
        let owner = tempfile::tempdir().expect("a folder");
        let name = format!("fv{}left", std::process::id());
        let path = Path::new("/run/netns").join(&name);
        fs::create_dir_all("/run/netns").and_then(|()| fs::write(&path, "")).expect("a file");
        let inode = fs::metadata(&path).expect("the file").ino();
        RecordedNamespace::write(owner.path(), "fv0gone", 7).expect("a record");
        RecordedNamespace::write(owner.path(), &name, inode).expect("a record");
        let mut found = Vec::new();
        let removed = remove_of_owner(owner.path(), false, &mut found);
        fs::remove_file(&path).expect("the file");
        assert!(removed.is_err() && found.is_empty(), "{found:?}");
        assert_eq!(RecordedNamespace::all(owner.path()).len(), 2);
        remove_of_owner(owner.path(), false, &mut found).expect("a namespace that is no more");
        assert_eq!((found.len(), owner.path().exists()), (1, false));
    }
}
