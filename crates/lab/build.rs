//! Sets the compiler and the commit of the build for the provenance record.
//!
//! Neither is needed to build: outside a checkout, or without git, the record says "unknown".

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(Command::new(rustc).arg("--version"));
    println!("cargo::rustc-env=LAB_BUILD_RUSTC={}", version.unwrap_or_default());
    println!("cargo::rustc-env=LAB_BUILD_COMMIT={}", commit().unwrap_or_default());
}

/// Returns the checked-out commit if git tracks this file. Without this check, a package unpacked inside another
/// repository would report the commit of that repository.
fn commit() -> Option<String> {
    output(git().args(["ls-files", "--error-unmatch", "build.rs"]))?;
    watch_checkout();
    output(git().args(["rev-parse", "--short=12", "HEAD"]))
}

/// Makes cargo rebuild when another commit is checked out: each checkout appends to the log of HEAD.
fn watch_checkout() {
    let log = output(git().args(["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]));
    // Cargo treats a missing file as changed and would rebuild every time.
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
