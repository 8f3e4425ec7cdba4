//! The cases in which our router does not do what the kernel does: `docs/kernel-differences.md` lists them, with
//! reasons.

use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../docs/kernel-differences.md");

/// The names of the cases: all that stands in backquotes at the beginning of a list's line.
pub fn listed() -> BTreeSet<&'static str> {
    DOCUMENT.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect()
}
