//! The memory of a program, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// The resident set.
    pub resident: u64,
    /// BPF maps, which are the kernel's memory.
    pub maps: u64,
}

impl ProgramMemory {
    pub fn all(self) -> u64 {
        self.resident + self.maps
    }
}

/// Of a process and of all others in the group that it leads, if it leads one.
pub fn memory_of(process: u32) -> ProgramMemory {
    let parts = parts(process);
    let maps: BTreeMap<u64, u64> = parts.iter().flat_map(|path| maps(path)).collect();
    ProgramMemory {
        resident: parts.iter().filter_map(|path| resident(path)).sum(),
        maps: maps.values().sum(),
    }
}

/// The folders below /proc of a process and of its group.
fn parts(process: u32) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part = |path: &PathBuf| path.ends_with(process.to_string()) || group(path) == Some(process);
    all.filter(is_part).collect()
}

/// The numbers of a process and of all others in the group that it leads, if it leads one.
pub fn processes_of(process: u32) -> Vec<u32> {
    let parts = parts(process);
    parts.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}

/// The third field after the name, which may have parentheses and spaces.
fn group(process: &Path) -> Option<u32> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn resident(process: &Path) -> Option<u64> {
    let text = fs::read_to_string(process.join("status")).ok()?;
    field(&text, "VmRSS:").map(|kilobytes| kilobytes * 1024)
}

/// The maps that a process has open, with their bytes, by their numbers.
fn maps(process: &Path) -> Vec<(u64, u64)> {
    let entries = fs::read_dir(process.join("fdinfo")).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| Some((field(&text, "map_id:")?, field(&text, "memlock:")?))).collect()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_resident_set() {
        assert!(memory_of(std::process::id()).resident > 100_000);
        assert_eq!(memory_of(u32::MAX), ProgramMemory::default());
    }

    #[test]
    fn a_process_is_a_part_of_itself() {
        let own = std::process::id();
        assert!(processes_of(own).contains(&own));
        assert!(processes_of(u32::MAX).is_empty());
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "map_type:\t1\nmap_id:\t17\nmemlock:\t4096\n";
        assert_eq!((field(text, "map_id:"), field(text, "memlock:")), (Some(17), Some(4096)));
        assert_eq!(field("Name:\tx\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12));
        assert_eq!(field(text, "VmRSS:"), None);
    }
}
