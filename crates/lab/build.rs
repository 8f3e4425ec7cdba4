//! Tells the provenance record which compiler and which commit the program was built from.
//!
//! Neither is needed to build: outside a checkout, or without git, the record says that it does not know.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(Command::new(rustc).arg("--version"));
    println!("cargo::rustc-env=LAB_BUILD_RUSTC={}", version.unwrap_or_default());
    println!("cargo::rustc-env=LAB_BUILD_COMMIT={}", commit().unwrap_or_default());
}

/// The checked-out commit, if this very file is tracked by it: a package unpacked inside somebody else's repository
/// must not claim that one's commit.
fn commit() -> Option<String> {
    output(git().args(["ls-files", "--error-unmatch", "build.rs"]))?;
    watch_checkout();
    output(git().args(["rev-parse", "--short=12", "HEAD"]))
}

/// Rebuild when another commit is checked out: the log of HEAD grows with each one.
fn watch_checkout() {
    let log = output(git().args(["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]));
    // Cargo takes a missing file for a changed one and would rebuild every time.
    if let Some(log) = log.filter(|log| std::path::Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(env!("CARGO_MANIFEST_DIR"));
    git
}

fn output(command: &mut Command) -> Option<String> {
    let done = command.output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}
