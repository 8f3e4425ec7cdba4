//! The mark of a namespace of ours: an alias of its loopback interface. The kernel gives the inode of a removed namespace to
//! another one.

use super::command::{output, run};
use super::error::TestbedError;

const MARK: &str = "fullview-lab";

/// Marks the namespace of the calling thread.
pub fn mark() -> Result<(), TestbedError> {
    run("ip", &["link", "set", "dev", "lo", "alias", MARK], "")
}

/// Whether the namespace of this name is marked.
pub fn is_marked(name: &str) -> Result<bool, TestbedError> {
    let shown = output("ip", &["-n", name, "-oneline", "link", "show", "dev", "lo"], "")?;
    Ok(shown.contains(&format!("alias {MARK}")))
}
