//! The cases in which a device does not do what the kernel does: `docs/reference/kernel-differences.md` lists them, with reasons.

use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../docs/reference/kernel-differences.md");

/// Returns the names of a device's cases. A line of the list begins with a case in backquotes; the devices follow,
/// separated by commas.
pub fn listed(device: &str) -> BTreeSet<&'static str> {
    lines()
        .filter(|(_, devices)| devices.split(", ").any(|name| name == device))
        .map(|(case, _)| case)
        .collect()
}

/// Returns all cases that are listed for any device.
pub fn cases() -> impl Iterator<Item = &'static str> {
    lines().map(|(case, _)| case)
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    DOCUMENT.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`: "))
}
