//! This build against another one: a second process of this program, commits, and scripts that answer as a build would.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Ran, SMALL, fullview, run_in};

/// A folder with the small experiment.
fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    dir
}

/// A build of this text in the folder.
fn script(dir: &Path, text: &str) -> PathBuf {
    executable(dir, "other.sh", &format!("#!/bin/sh\n{text}\n"))
}

fn executable(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

fn against(dir: &Path, other: &Path, more: &[&str]) -> Ran {
    run_in(dir, &[&["bench", "small.toml", "--against", other.to_str().unwrap()], more].concat())
}

/// Checks that the other program is refused as bad input before anything is measured.
fn refused(text: &str, words: &[&str]) {
    let dir = folder();
    let ran = against(dir.path(), &script(dir.path(), text), &[]);
    assert_eq!(ran.code, 2, "{text}: {}", ran.err);
    words.iter().for_each(|word| assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err));
    assert!(!dir.path().join("results").exists());
}

#[test]
fn two_builds_take_turns_and_every_variant_is_compared_with_itself() {
    let dir = folder();
    let this = assert_cmd::cargo::cargo_bin("fullview");
    let ran = against(dir.path(), &this, &["--out", "out"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let last = ran.out.lines().last().unwrap();
    assert!(last.starts_with("this build against the other build: "), "{}", ran.out);
    assert!(last.ends_with("of 4 comparisons"), "{}", ran.out);
    let page = fs::read_to_string(dir.path().join("out/README.md")).unwrap();
    let again = page.split("Measured with:").nth(1).unwrap();
    assert!(again.contains("--against") && again.contains("run that command again"), "{again}");
    assert!(!page.contains("fullview bench campaign.toml"), "it is not read: {again}");
    let panels = fs::read_to_string(dir.path().join("out/panels.jsonl")).unwrap();
    assert_eq!(panels.lines().filter(|line| line.contains("\"controls\":3")).count(), 6);
    let campaign = fs::read_to_string(dir.path().join("out/campaign.toml")).unwrap();
    assert!(campaign.contains(r#"["lockless-after", "lockless-before"]"#), "{campaign}");
    let host = fs::read_to_string(dir.path().join("out/host.json")).unwrap();
    assert!(host.contains("this build: fullview 0.1.0"), "{host}");
    let ran = against(dir.path(), &this, &["--out", "out", "--resume", "--runs", "4"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(fs::read_to_string(dir.path().join("out/panels.jsonl")).unwrap().lines().count(), 8);
}

#[test]
fn programs_that_cannot_take_turns_are_refused_with_the_reason() {
    refused("exit 0", &["no build of fullview", "it ended at once"]);
    refused("echo hello", &["no build of fullview", "its first line is \"hello\""]);
    refused(
        "echo \"error: unrecognized subcommand '$1'\" >&2; exit 2",
        &["older than the command serve-slices"],
    );
    let later = r#"echo '{"hello":{"protocol":2,"version":"9","debug":true,"features":[]}}'"#;
    refused(later, &["serves version 2", "asks by version 1"]);
    let other_kind = format!(
        r#"echo '{{"hello":{{"protocol":1,"version":"9","debug":{},"features":[]}}}}'; cat"#,
        !cfg!(debug_assertions)
    );
    refused(&other_kind, &["debug build", "release build", "compare two of one kind"]);
}

/// Both builds would start one program, which is compared with itself.
#[test]
fn routers_that_are_processes_of_their_own_are_refused_before_anything_is_built() {
    let dir = folder();
    let peer = "load.peer = { program = \"./router.sh\", inet = \"a:32\", inet6 = \"a:32\" }";
    fs::write(dir.path().join("small.toml"), SMALL.replace("load.shape = \"one-core\"", peer)).unwrap();
    let ran = against(dir.path(), Path::new("no-such-commit"), &[]);
    assert!(ran.code == 2 && ran.err.contains("small.toml:15:13: --against would compare"), "{}", ran.err);
    assert!(ran.err.contains("fullview compare") && !dir.path().join("results").exists(), "{}", ran.err);
}

#[test]
fn a_file_that_is_no_program_and_a_name_that_is_no_commit_are_refused() {
    let dir = folder();
    let ran = against(dir.path(), Path::new("small.toml"), &[]);
    assert!(ran.code == 2 && ran.err.contains("cannot be started"), "{}: {}", ran.code, ran.err);
    let ran = against(dir.path(), Path::new("HEAD"), &[]);
    assert!(ran.code == 2 && ran.err.contains("neither the file of a program nor a commit"), "{}", ran.err);
    let experiment = dir.path().join("small.toml");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = run_in(here, &["bench", experiment.to_str().unwrap(), "--against", "no-such-commit"]);
    assert!(ran.code == 2 && ran.err.contains("--against no-such-commit"), "{}: {}", ran.code, ran.err);
    let ran = run_in(dir.path(), &["bench", "small.toml", "--keep"]);
    assert!(ran.code == 2 && ran.err.contains("--against"), "{}", ran.err);
}

/// A build whose slices have known counts: 20,000 of a control, 10,000 of a member, `$COPY` of a process with one member.
/// `$MODE` makes it fail.
fn known_build() -> String {
    const BUILD: &str = r#"
echo '{"hello":{"protocol":1,"version":"0.0.9","rustc":null,"commit":"0123456789ab","debug":DEBUG,"features":[]}}'
member='{"control":0}'
while read -r line; do
    case $line in
    *panel*)
        case $line in
        *algorithm*algorithm*) members="$member,$member"; counted=10000 ;;
        *) members=$member; counted=$COPY ;;
        esac
        bad='{"control":0,"wrong":"key 3 has the next hop 4, and 5 is right"}'
        case $line in
        *lockless*algorithm*) at=0; wrong="$bad,$member" ;;
        *) at=1; wrong="$member,$bad" ;;
        esac
        case $MODE in
        refuse) [ "$members" = "$member" ] || {
            echo '{"error":{"member":'$at',"message":"unknown field `burst`"}}'; continue; } ;;
        wrong) [ "$members" = "$member" ] || members=$wrong ;;
        esac
        echo '{"ready":{"controls":1,"subtracts":true,"shortest_ns":1000000,"longest_ns":1000000,"members":['"$members"']}}' ;;
    *slice*control*) echo '{"slice":{"counted":20000,"offered":20000,"ns":1000000,"lost_core_ns":0}}' ;;
    *slice*)
        if [ "$MODE" = end ]; then echo "out of memory" >&2; exit 1; fi
        echo '{"slice":{"counted":'"$counted"',"offered":'"$counted"',"ns":1000000,"lost_core_ns":0}}' ;;
    *findings*)
        one='{"counters":{},"reasons":[],"events":[]}'
        case $members in *,*control*) all="$one,$one" ;; *) all=$one ;; esac
        echo '{"findings":{"members":['"$all"'],"bed":'"$one"'}}' ;;
    *end*) echo '"ended"' ;;
    esac
done"#;
    BUILD.replace("DEBUG", &cfg!(debug_assertions).to_string())
}

/// Compares with the known build.
fn against_known(mode: &str, copy: u32, more: &[&str]) -> Ran {
    let dir = folder();
    script(dir.path(), &known_build());
    let arguments = [&["bench", "small.toml", "--against", "other.sh", "--out", "out"], more].concat();
    let mut command = fullview();
    command.args(arguments).current_dir(dir.path()).env("MODE", mode).env("COPY", copy.to_string());
    Ran::of(&command.output().unwrap())
}

#[test]
fn a_build_on_another_bed_is_compared_and_the_beds_are_named() {
    let ran = against_known("", 10_000, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("of 4 comparisons"), "{}", ran.out);
    // A bed that counts 20,000 in each millisecond is none of this machine.
    assert!(ran.err.contains("without a router the bed of radix (this build) is"), "{}", ran.err);
}

#[test]
fn the_failure_of_another_build_is_reported_with_its_variant() {
    let refused = against_known("refuse", 10_000, &[]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    for words in ["lockless-before, ", "preparing failed", "unknown field `burst`"] {
        assert!(refused.err.contains(words), "{words:?} is missing in: {}", refused.err);
    }
    let wrong = against_known("wrong", 10_000, &[]);
    for words in ["lockless-before, ", "verifying failed", "5 is right"] {
        assert!(wrong.err.contains(words), "{words:?} is missing in: {}", wrong.err);
    }
    let ended = against_known("end", 10_000, &[]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(ended.err.contains("ended before it answered: out of memory"), "{}", ended.err);
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let ran = Command::new("git").args(identity).args(arguments).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository whose only commit is a program called fullview that does not know the command.
fn repository() -> TempDir {
    let dir = folder();
    let root = dir.path();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join(".gitignore"), "target\n").unwrap();
    fs::write(
        root.join("Cargo.toml"),
        "[package]\nname = \"fullview\"\nedition = \"2024\"\n[features]\nbpf = []\n[workspace]\n",
    )
    .unwrap();
    let main = "fn main() { eprintln!(\"error: unrecognized subcommand\"); std::process::exit(2) }\n";
    fs::write(root.join("src/main.rs"), main).unwrap();
    git(root, &["init", "--quiet"]);
    git(root, &["add", "."]);
    git(root, &["commit", "--quiet", "--message", "first"]);
    dir
}

/// What stands in `target/against`, without the compiled dependencies.
fn kept(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("target/against")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "build").collect()
}

#[test]
fn a_commit_is_built_beside_the_checkout_and_removed_afterwards() {
    let dir = repository();
    let root = dir.path();
    let ran = against(root, Path::new("HEAD"), &[]);
    assert!(ran.code == 2 && ran.err.contains("older than the command serve-slices"), "{}", ran.err);
    assert_eq!(kept(root), Vec::<String>::new());
    let ran = against(root, Path::new("HEAD"), &["--keep"]);
    assert!(ran.code == 2 && ran.err.contains("older than"), "{}", ran.err);
    assert_eq!(kept(root).len(), 2, "{:?}", kept(root));
    let again = against(root, Path::new("HEAD"), &[]);
    assert!(again.err.contains("is of an earlier run"), "{}", again.err);
    fs::write(root.join("src/main.rs"), "fn main() { nonsense }\n").unwrap();
    git(root, &["commit", "--quiet", "--all", "--message", "second"]);
    let ran = against(root, Path::new("HEAD"), &[]);
    assert!(ran.code == 1 && ran.err.contains("cargo could not build this commit"), "{}", ran.err);
    git(root, &["checkout", "--quiet", "HEAD~1"]);
}

/// In place of cargo: it builds a file with the name of the commit, and ends when another one has built over it, or after a
/// second.
const SLOW_CARGO: &str = r#"#!/bin/sh
commit=$(git rev-parse HEAD)
for kind in debug release; do
    mkdir -p "$CARGO_TARGET_DIR/$kind"
    echo "$commit" > "$CARGO_TARGET_DIR/$kind/fullview"
done
for wait in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(cat "$CARGO_TARGET_DIR/debug/fullview")" = "$commit" ] || exit 0
    sleep 0.1
done
"#;

#[test]
fn runs_that_build_two_commits_at_once_have_each_its_own() {
    let dir = repository();
    let root = dir.path();
    git(root, &["commit", "--quiet", "--allow-empty", "--message", "second"]);
    let cargo = executable(root, "slow-cargo", SLOW_CARGO);
    let run = |commit: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("fullview"));
        command.args(["bench", "small.toml", "--keep", "--against", commit]).env("CARGO", &cargo);
        command.current_dir(root).stderr(Stdio::null()).spawn().unwrap()
    };
    for mut run in ["HEAD", "HEAD~1"].map(run) {
        assert_eq!(run.wait().unwrap().code(), Some(2), "what was built is no program");
    }
    let programs: Vec<String> = kept(root).into_iter().filter(|name| name.starts_with("fullview-")).collect();
    assert_eq!(programs.len(), 2, "{programs:?}");
    for program in programs {
        let built = fs::read_to_string(root.join("target/against").join(&program)).unwrap();
        assert!(program["fullview-".len()..].starts_with(&built[..12]), "{program} is {built}");
    }
}

#[test]
fn only_a_repository_of_fullview_is_built() {
    let dir = repository();
    let root = dir.path();
    fs::write(root.join("Cargo.toml"), "[package]\nname = \"other\"\n").unwrap();
    let ran = against(root, Path::new("HEAD"), &[]);
    assert!(ran.code == 2 && ran.err.contains("not the repository of fullview"), "{}", ran.err);
}
