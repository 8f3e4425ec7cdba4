//! Files that are laid onto the device under test while one device is measured.
//!
//! The original is kept on the host below [`KEPT`], under its path with `%` for `/`, before the new content is written: a
//! killed shell, and a restart of the host, leave it there. A file that was not there has an empty mark instead.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::connection::checksum;
use super::error::RemoteError;
use super::inventory::DeviceSettings;
use super::shell::{RemoteFolder, RemoteLines, output};
use super::ssh::SshHost;
use serde::Serialize;

const KEPT: &str = "/var/lib/fullview-testbed";

/// What the shell of a host needs before it lays files or puts them back.
const FUNCTIONS: &str = r#"
kept_name() { printf '%s' "$1" | tr / %; }
put_back() {
    if [ -e "$kept/had$(kept_name "$1")" ]; then
        cp -p "$kept/had$(kept_name "$1")" "$1" && rm -f "$kept/had$(kept_name "$1")"
    elif [ -e "$kept/new$(kept_name "$1")" ]; then
        rm -f "$1" "$kept/new$(kept_name "$1")"
    fi
}
lay() {
    mkdir -p "$kept"
    chmod 700 "$kept"
    put_back "$2"
    if [ -e "$2" ]; then
        cp -p "$2" "$kept/part.$$"
        mv "$kept/part.$$" "$kept/had$(kept_name "$2")"
        cat "$1" >"$2"
    else
        : >"$kept/new$(kept_name "$2")"
        cp -p "$1" "$2"
    fi
}"#;

/// A file here, and its path on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    pub here: PathBuf,
    pub there: String,
}

/// A file for the record.
#[derive(Clone, Debug, Serialize)]
pub struct LaidFile {
    pub device: String,
    pub path: String,
    pub sha256: String,
}

impl DeviceSettings {
    /// Its files, with those of folders at the same places below the folder's path.
    pub fn placed_files(&self) -> Result<Vec<PlacedFile>, String> {
        let mut placed = Vec::new();
        for (here, there) in &self.files {
            let failed = |error: io::Error| format!("device {}: {}: {error}", self.name, here.display());
            place(here, there.trim_end_matches('/'), &mut placed).map_err(failed)?;
        }
        match placed.iter().find(|file| !is_path(&file.there)) {
            Some(PlacedFile { there, .. }) => Err(format!(
                "device {}: {there:?} is no absolute path of letters, digits and ._-+@:,=",
                self.name
            )),
            None => Ok(placed),
        }
    }

    /// Lays its files, and runs its first lines. Dropping the result puts the files back, and runs its last lines.
    pub fn start_lines(&self, host: &SshHost) -> Result<Option<RemoteLines>, RemoteError> {
        let files = self.files_for(host)?;
        if self.start.is_empty() && self.stop.is_empty() && files.is_empty() {
            return Ok(None);
        }
        if files.is_empty() {
            return RemoteLines::start(host, &self.start, &self.stop).map(Some);
        }
        let folder = RemoteFolder::make(host)?;
        let (mut first, mut last) = (vec![functions()], vec![functions()]);
        for (number, PlacedFile { here, there }) in files.iter().enumerate() {
            let copied = format!("{}/{number}", folder.path);
            host.copy(here, &copied)?;
            first.push(format!("lay '{copied}' '{there}'"));
            last.push(format!("put_back '{there}'"));
        }
        first.extend_from_slice(&self.start);
        last.extend_from_slice(&self.stop);
        RemoteLines::start(host, &first, &last).map(Some)
    }

    fn files_for(&self, host: &SshHost) -> Result<Vec<PlacedFile>, RemoteError> {
        let node = host.node.clone();
        self.placed_files().map_err(|said| RemoteError::Shell { node, what: "its files", said })
    }
}

/// The files of all devices with their contents' checksums.
pub fn laid_files(devices: &[DeviceSettings]) -> Vec<LaidFile> {
    let of_device = |device: &DeviceSettings| {
        let files = device.placed_files().unwrap_or_default();
        let name = device.name.clone();
        files.into_iter().map(move |file| LaidFile {
            device: name.clone(),
            path: file.there,
            sha256: sha256(&file.here),
        })
    };
    devices.iter().flat_map(of_device).collect()
}

/// The checksum of a file; empty if it cannot be read.
pub fn sha256(file: &Path) -> String {
    let sum = checksum(file).unwrap_or_default();
    sum.split_ascii_whitespace().next().unwrap_or_default().to_owned()
}

/// Puts back what killed shells left of the files of these devices, and returns their paths; a dry run only says them.
pub fn put_back_files(
    host: &SshHost,
    devices: &[DeviceSettings],
    dry_run: bool,
) -> Result<Vec<String>, RemoteError> {
    let placed: Vec<PlacedFile> =
        devices.iter().filter_map(|device| device.placed_files().ok()).flatten().collect();
    if placed.is_empty() {
        return Ok(Vec::new());
    }
    let put_back = if dry_run { "" } else { "put_back \"$1\"" };
    let mut script = format!(
        "{}\nshow() {{ n=$(kept_name \"$1\"); if [ -e \"$kept/had$n\" ] || [ -e \"$kept/new$n\" ]; then echo \"$1\"; {put_back}\nfi; }}\n",
        functions()
    );
    placed.iter().for_each(|file| script += &format!("show '{}'\n", file.there));
    let shown = output(host, &script)?;
    Ok(shown.lines().map(str::to_owned).collect())
}

fn functions() -> String {
    format!("kept={KEPT}{FUNCTIONS}")
}

fn place(here: &Path, there: &str, placed: &mut Vec<PlacedFile>) -> io::Result<()> {
    if !fs::metadata(here)?.is_dir() {
        placed.push(PlacedFile { here: here.into(), there: there.into() });
        return Ok(());
    }
    let mut entries = fs::read_dir(here)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    entries.iter().try_for_each(|entry| {
        place(&entry.path(), &format!("{there}/{}", entry.file_name().to_string_lossy()), placed)
    })
}

fn is_path(there: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=".contains(c);
    there.starts_with('/')
        && there.chars().all(fits)
        && !there.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shell(kept: &Path, lines: &str) -> bool {
        let script = format!("set -e\nkept='{}'{FUNCTIONS}\n{lines}", kept.display());
        Command::new("sh").args(["-c", &script]).status().unwrap().success()
    }

    #[test]
    fn an_original_is_kept_and_put_back_also_when_a_file_was_laid_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text = |name: &str| fs::read_to_string(path(name)).ok();
        for (name, content) in [("etc", "old"), ("a", "one"), ("b", "two")] {
            fs::write(path(name), content).unwrap();
        }
        let lines = |line: &str| line.replace('@', &folder.path().display().to_string());
        assert!(shell(&path("kept"), &lines("lay @/a @/etc; lay @/a @/made")));
        assert_eq!((text("etc").as_deref(), text("made").as_deref()), (Some("one"), Some("one")));
        assert!(shell(&path("kept"), &lines("lay @/b @/etc")), "after a shell that was killed");
        assert_eq!(text("etc").as_deref(), Some("two"));
        assert!(shell(&path("kept"), &lines("put_back @/etc; put_back @/made; put_back @/etc")));
        assert_eq!((text("etc").as_deref(), text("made")), (Some("old"), None));
        assert_eq!(fs::read_dir(path("kept")).unwrap().count(), 0);
        assert!(!shell(&path("kept"), &lines("lay @/missing @/etc")));
        assert!(!shell(&path("kept"), &lines("lay @/a @/no/folder")));
    }

    #[test]
    fn folders_are_laid_file_by_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("frr")).unwrap();
        fs::write(folder.path().join("frr/zebra.conf"), "").unwrap();
        fs::write(folder.path().join("hosts"), "").unwrap();
        let mut placed = Vec::new();
        place(folder.path(), "/etc", &mut placed).unwrap();
        let there: Vec<&str> = placed.iter().map(|file| file.there.as_str()).collect();
        assert_eq!(there, ["/etc/frr/zebra.conf", "/etc/hosts"]);
        assert!(is_path("/etc/frr/frr.conf"));
        for wrong in ["etc/x", "/etc/../x", "/etc/a b", "/etc/it's", "/", "/etc/100%"] {
            assert!(!is_path(wrong), "{wrong}");
        }
    }
}
