//! What a test needs of the machine. Where something is missing, the test is skipped; in CI it fails.

use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// Returns whether this process runs in CI: the variable `CI` has a value other than `false`.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Returns `is_there`. If it is false, prints that the test is skipped because `what` is missing; in CI, fails.
pub fn has(is_there: bool, what: &str) -> bool {
    assert!(is_there || !in_ci(), "in CI nothing may be skipped: no {what}");
    if !is_there {
        eprintln!("skipped: no {what}");
    }
    is_there
}

/// Returns the path of a program in `PATH` or in the folders where Debian installs daemons.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/sbin", "/usr/lib/frr"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(daemons);
    folders.map(|folder| folder.join(program)).find(|path| path.exists())
}

/// Returns whether these programs are installed.
pub fn has_programs(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| find(program).is_none()).collect();
    has(missing.is_empty(), &format!("{missing:?}: install them"))
}

/// Returns whether this process can make network namespaces and finds these programs.
#[cfg(target_os = "linux")]
pub fn may_run(programs: &[&str]) -> bool {
    static NAMESPACES: OnceLock<Result<(), String>> = OnceLock::new();
    let namespaces = NAMESPACES.get_or_init(try_namespace);
    let refused = namespaces.as_ref().err().map(String::as_str).unwrap_or_default();
    has(is_root(), "right to make network namespaces: run as root")
        && has(namespaces.is_ok(), &format!("network namespaces: {refused}"))
        && has_programs(programs)
}

/// Returns whether this process can load programs into the kernel.
#[cfg(target_os = "linux")]
pub fn may_load_programs() -> bool {
    has(is_root(), "right to load programs into the kernel: run as root")
}

#[cfg(target_os = "linux")]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a namespace in a thread that ends at once. In a container, root may lack this right.
#[cfg(target_os = "linux")]
fn try_namespace() -> Result<(), String> {
    let made =
        std::thread::spawn(crate::current::enter_new_namespace).join().expect("no panic in the thread");
    made.map_err(|error| error.to_string())
}
