//! The mark of a namespace of ours: an alias of its loopback interface. The kernel gives the inode of a removed namespace to
//! another one.

use std::process::Command;

use super::command::run;
use super::error::TestbedError;

const MARK: &str = "fullview-lab";

/// Marks the namespace of the calling thread.
pub fn mark() -> Result<(), TestbedError> {
    run("ip", &["link", "set", "dev", "lo", "alias", MARK], "")
}

/// Whether the namespace of this name is marked.
pub fn is_marked(name: &str) -> bool {
    let shown = Command::new("ip").args(["-n", name, "-oneline", "link", "show", "dev", "lo"]).output();
    shown.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains(&format!("alias {MARK}")))
}
