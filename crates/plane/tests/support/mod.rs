//! Support for tests with BPF programs.

/// Whether this process may load programs and create namespaces. If not, the test is skipped with a message, or fails in CI.
pub fn may_load_programs() -> bool {
    let root = rustix::process::geteuid().is_root();
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(root || !ci, "in CI nothing may be skipped: run as root");
    if !root {
        eprintln!("skipped: needs root, to load programs into the kernel");
    }
    root
}
