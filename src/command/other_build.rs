//! The other build of a comparison: a program that exists, or a commit of this repository that is built.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use fullview_router::error::BadInput;
use fullview_router::log;

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

/// A program that can be started. What this run made for it is removed with this value, unless the user keeps it or another run
/// uses it.
pub struct OtherBuild {
    path: PathBuf,
    /// What this run locks to remove the program; nothing if it stays.
    removal_lock: Option<PathBuf>,
    /// The program, locked for as long as it is used; nothing if the user gave it.
    in_use: Option<File>,
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
            Source::Program(path) => Ok(Self { path: path.clone(), removal_lock: None, in_use: None }),
            Source::Commit(commit) => commit.program(keep),
        }
    }

    /// Locks a program that nothing removes meanwhile.
    fn used(path: PathBuf, removal_lock: Option<PathBuf>) -> io::Result<Self> {
        let in_use = File::open(&path)?;
        in_use.lock_shared()?;
        Ok(Self { path, removal_lock, in_use: Some(in_use) })
    }

    /// Where the program is, while this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OtherBuild {
    fn drop(&mut self) {
        let (Some(in_use), Some(path)) = (&self.in_use, &self.removal_lock) else { return };
        let Ok(_alone) = lock(path) else { return };
        if in_use.try_lock().is_ok() {
            // It stays where no further run is disturbed by it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until no other run has this lock, which this run has while the file is open.
fn lock(path: &Path) -> anyhow::Result<File> {
    let name = || path.display().to_string();
    let file = File::options().create(true).append(true).open(path).with_context(name)?;
    if file.try_lock().is_err() {
        log::line(&format!("another run has {}: this one waits until it has built its program", name()));
        file.lock().with_context(name)?;
    }
    Ok(file)
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

    /// The program of this commit, built unless an earlier run kept it.
    fn program(&self, keep: bool) -> anyhow::Result<OtherBuild> {
        let folder = self.root.join(FOLDER);
        let program = folder.join(format!("fullview-{}{}", self.short(), suffix()));
        let of_program = || program.display().to_string();
        let target = folder.join("build");
        fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
        let lock_path = target.join(format!("{}.lock", self.short()));
        let _alone = lock(&lock_path)?;
        if program.exists() {
            log::line(&format!("{} was kept from an earlier run, or another one uses it", program.display()));
            return OtherBuild::used(program.clone(), None).with_context(of_program);
        }
        // The programs of all commits have one name in `target`: none may be built before this one is copied.
        let _target = lock(&target.join("target.lock"))?;
        let worktree = Worktree::add(self, folder.join(self.short()), keep)?;
        let built = build(&worktree.path, &target)?;
        copy_whole(&built, &program)
            .and_then(|()| OtherBuild::used(program.clone(), (!keep).then_some(lock_path)))
            .with_context(of_program)
    }
}

/// Copies a program so that its final name is that of a whole file only: a later run takes it for one that was kept.
fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    let partial = to.with_added_extension("partial");
    let copied = fs::copy(from, &partial)
        .and_then(|_| File::open(&partial)?.sync_all())
        .and_then(|()| fs::rename(&partial, to));
    if copied.is_err() {
        // If this fails too, a partial file stays that nothing reads.
        let _ = fs::remove_file(&partial);
    }
    copied
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The device has no space for the copy, of which a part is written.
    #[test]
    fn a_copy_that_fails_leaves_nothing_that_a_later_run_takes_for_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let [from, to] = ["built", "fullview-0123"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("/dev/full", dir.path().join("fullview-0123.partial")).unwrap();
        fs::write(&from, "a program").unwrap();
        assert!(copy_whole(&from, &to).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the program that was built");
        copy_whole(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"a program");
    }

    /// A commit whose program is there already.
    fn commit_with_program(root: &Path) -> Found {
        let name = "0123456789abcdef0123456789abcdef01234567".to_owned();
        let commit = Commit { root: root.into(), name };
        fs::create_dir_all(root.join(FOLDER)).unwrap();
        fs::write(program_in(root), "a program").unwrap();
        Found { label: "a commit".into(), slug: "a-commit".into(), source: Source::Commit(commit) }
    }

    fn program_in(root: &Path) -> PathBuf {
        root.join(FOLDER).join(format!("fullview-0123456789ab{}", suffix()))
    }

    #[test]
    fn a_program_that_was_kept_stays() {
        let dir = tempfile::tempdir().unwrap();
        let found = commit_with_program(dir.path());
        let other = OtherBuild::make(&found, false).unwrap();
        assert_eq!(other.path(), program_in(dir.path()));
        drop(other);
        assert!(program_in(dir.path()).exists());
    }

    #[test]
    fn a_program_that_another_run_uses_stays() {
        let dir = tempfile::tempdir().unwrap();
        let found = commit_with_program(dir.path());
        let lock_path = dir.path().join("lock");
        let made = || OtherBuild::used(program_in(dir.path()), Some(lock_path.clone())).unwrap();
        let (first, second) = (made(), OtherBuild::make(&found, false).unwrap());
        drop(first);
        assert!(second.path().exists());
        drop((second, made()));
        assert!(!program_in(dir.path()).exists());
    }
}
