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

/// The same, by records that are open.
pub fn remove_recorded(records: &Records, dry_run: bool) -> Result<Vec<Leftover>, TestbedError> {
    let mut found = Vec::new();
    for folder in records.of_ended()? {
        for namespace in RecordedNamespace::all(&folder) {
            remove_namespace(&namespace, dry_run, &mut found)?;
        }
        found.push(Leftover { kind: LeftoverKind::Folder, name: folder.display().to_string() });
        if !dry_run {
            remove_folder(&folder)?;
        }
    }
    Ok(found)
}

fn remove_namespace(
    namespace: &RecordedNamespace,
    dry_run: bool,
    found: &mut Vec<Leftover>,
) -> Result<(), TestbedError> {
    let name = namespace.name.clone();
    let Some(is_same) = namespace.is_there() else { return Ok(()) };
    if !(is_same && is_marked(&name)) {
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
