//! The other build of a comparison: a program that exists, or a commit of this repository that is built.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use fullview_router::error::BadInput;
use fullview_router::log;

use super::shared_program::{LockedProgram, UsedProgram, lock};

/// Where commits are built, below the root of the repository.
const FOLDER: &str = "target/against";

/// What the user named.
pub struct Found {
    /// What reports call it.
    pub label: String,
    /// The same for the name of a folder.
    pub slug: String,
    source: Source,
}

enum Source {
    Program(PathBuf),
    Commit(Commit),
}

/// A commit of the repository of the current folder.
struct Commit {
    /// Root of the repository.
    root: PathBuf,
    /// Its whole name.
    name: String,
}

/// A program that can be started.
pub enum OtherBuild {
    /// One that the user gave.
    Given(PathBuf),
    /// One that was built.
    Built(UsedProgram),
}

impl OtherBuild {
    /// Finds out whether this is a program or a commit.
    pub fn find(named: &str) -> anyhow::Result<Found> {
        let path = Path::new(named);
        if path.is_file() {
            let path = std::path::absolute(path).with_context(|| named.to_owned())?;
            let slug = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Found { label: "the other build".into(), slug, source: Source::Program(path) });
        }
        let commit = Commit::named(named)?;
        let short = commit.short().to_owned();
        let label =
            if named.contains(&short[..7]) { short.clone() } else { format!("{named} {}", &short[..7]) };
        Ok(Found { label, slug: short, source: Source::Commit(commit) })
    }

    /// Builds it if it is a commit.
    pub fn make(found: &Found, keep: bool) -> anyhow::Result<Self> {
        match &found.source {
            Source::Program(path) => Ok(Self::Given(path.clone())),
            Source::Commit(commit) => commit.program(keep).map(Self::Built),
        }
    }

    /// Where the program is, while this value lives.
    pub fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Built(program) => program.path(),
        }
    }
}

impl Commit {
    fn named(named: &str) -> anyhow::Result<Self> {
        let refused = |why: &str| {
            BadInput(format!(
                "--against {named}: neither the file of a program nor a commit of this repository: {why}"
            ))
        };
        let root = git(Path::new("."), &["rev-parse", "--show-toplevel"]).map_err(|why| refused(&why))?;
        let commit = format!("{named}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let name = git(Path::new(&root), &arguments).map_err(|_| refused("git does not know it"))?;
        if !is_fullview(Path::new(&root)) {
            return Err(refused("this is not the repository of fullview").into());
        }
        Ok(Self { root: root.into(), name })
    }

    /// The part of its name that tells it from other commits.
    fn short(&self) -> &str {
        &self.name[..12]
    }

    /// The program of this commit, built unless it is there.
    fn program(&self, keep: bool) -> anyhow::Result<UsedProgram> {
        let folder = self.root.join(FOLDER);
        let target = folder.join("build");
        fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
        let path = folder.join(format!("fullview-{}{}", self.short(), suffix()));
        let program = LockedProgram::new(path, target.join(format!("{}.lock", self.short())))?;
        if let Some(found) = program.found(keep)? {
            return Ok(found);
        }
        // The programs of all commits have one name in `target`: none may be built before this one is copied.
        let _target = lock(&target.join("target.lock"))?;
        let worktree = Worktree::add(self, folder.join(self.short()), keep)?;
        program.copied(&build(&worktree.path, &target)?, keep)
    }
}

/// A checkout of a commit beside the user's.
struct Worktree<'a> {
    root: &'a Path,
    path: PathBuf,
    keep: bool,
}

impl<'a> Worktree<'a> {
    fn add(commit: &'a Commit, path: PathBuf, keep: bool) -> anyhow::Result<Self> {
        let worktree = Self { root: &commit.root, path, keep };
        worktree.remove();
        let text = worktree.path.to_str().context("the path of this folder is not UTF-8")?;
        git(worktree.root, &["worktree", "add", "--quiet", "--detach", text, &commit.name])
            .map_err(|why| anyhow::anyhow!("git worktree add {text}: {why}"))?;
        Ok(worktree)
    }

    /// Removes what is there: of this run, or of one that was killed.
    fn remove(&self) {
        let path = self.path.to_string_lossy();
        // It fails where there is nothing to remove.
        let _ = git(self.root, &["worktree", "remove", "--force", &path]);
        let _ = fs::remove_dir_all(&self.path);
        let _ = git(self.root, &["worktree", "prune"]);
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.remove();
        }
    }
}

/// Builds the program in `checkout` as this one was built. Compiled dependencies stay in `target` for the next build.
fn build(checkout: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    log::line(&format!("building {} (profile {profile}{})", checkout.display(), suffix()));
    let features: &[&str] = if cfg!(feature = "bpf") { &["--features", "bpf"] } else { &[] };
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--bin", "fullview", "--profile", profile])
        .args(features)
        .env("CARGO_TARGET_DIR", target)
        .current_dir(checkout)
        .stdout(Stdio::null())
        .status()
        .context("cannot run cargo, which builds the other commit; give the path of a program instead")?;
    anyhow::ensure!(
        status.success(),
        "{}: cargo could not build this commit: {status}; its messages are above",
        checkout.display()
    );
    let folder = if cfg!(debug_assertions) { "debug" } else { "release" };
    Ok(target.join(folder).join("fullview"))
}

/// What distinguishes programs of one commit.
fn suffix() -> &'static str {
    match (cfg!(debug_assertions), cfg!(feature = "bpf")) {
        (false, false) => "",
        (false, true) => "-bpf",
        (true, false) => "-debug",
        (true, true) => "-debug-bpf",
    }
}

/// Whether the root package of a repository is this program.
fn is_fullview(root: &Path) -> bool {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok();
    let manifest: Option<toml::Table> = manifest.and_then(|text| text.parse().ok());
    let name = manifest.as_ref().and_then(|manifest| manifest.get("package")?.get("name")?.as_str());
    name == Some("fullview")
}

/// The output of git, or what it says against it.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let ran = Command::new("git").args(arguments).current_dir(folder).output();
    let ran = ran.map_err(|error: io::Error| format!("git cannot be run: {error}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if ran.status.success() { Ok(text(ran.stdout)) } else { Err(text(ran.stderr)) }
}
