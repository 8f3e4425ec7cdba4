//! What tests of the kernel's side need.

/// Whether this process may load programs and make namespaces. If not, the test says so and is skipped; in CI it fails.
pub fn may_load_programs() -> bool {
    let root = rustix::process::geteuid().is_root();
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(root || !ci, "in CI nothing may be skipped: run as root");
    if !root {
        eprintln!("skipped: needs root, to load programs into the kernel");
    }
    root
}
