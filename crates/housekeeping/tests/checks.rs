//! The checks pass on a clean workspace, and fail on each thing they exist for.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside `#[test]` functions

use std::path::Path;
use std::process::Command;

/// Two crates, `low` below `high`, and a crate for tests; nothing in them is wrong.
const CLEAN: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = ['low', 'high', 'testnet']\n"),
    ("rules.toml", "layers = [['low'], ['high']]\ntests = ['testnet']\n"),
    ("low/Cargo.toml", "[package]\nname = 'low'\n[dev-dependencies]\ntestnet.path = '../testnet'\n"),
    ("low/src/lib.rs", "pub mod a;\npub mod b;\npub use a::{A, Other};\n"),
    ("low/src/a.rs", "use crate::b::B;\npub struct A(B);\npub struct Other;\nimpl A { fn f() {} }\n"),
    ("low/src/b.rs", "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n    struct B;\n}\n"),
    ("high/Cargo.toml", "[package]\nname = 'high'\n[dependencies]\nlow.path = '../low'\n"),
    ("high/src/lib.rs", "mod parent;\n"),
    ("high/src/parent/mod.rs", "mod child;\npub use child::Child;\npub struct Parent;\n"),
    ("high/src/parent/child.rs", "pub struct Child(super::Parent);\n"),
    ("testnet/Cargo.toml", "[package]\nname = 'testnet'\n[dependencies]\nhigh.path = '../high'\n"),
    ("testnet/src/lib.rs", "\n"),
];

/// Runs a check on the clean workspace with these files in place of some, or beside them: whether it passes, and what it
/// prints.
fn check(name: &str, changed: &[(&str, &str)]) -> (bool, String) {
    let root = tempfile::tempdir().unwrap();
    CLEAN.iter().chain(changed).for_each(|(file, text)| write(&root.path().join(file), text));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview-housekeeping"));
    let output =
        command.args(["--rules", "rules.toml", "--root"]).arg(root.path()).arg(name).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

#[track_caller]
fn fails(name: &str, changed: &[(&str, &str)], expected: &[&str]) {
    let (passed, output) = check(name, changed);
    assert!(!passed, "it passed:\n{output}");
    expected.iter().for_each(|line| assert!(output.contains(line), "no line with {line} in:\n{output}"));
}

#[test]
fn a_clean_workspace_passes_every_check() {
    for name in ["imports", "types", "functions"] {
        let (passed, output) = check(name, &[]);
        assert!(passed, "{name}:\n{output}");
    }
}

#[test]
fn a_circle_is_a_chain_of_places() {
    let b = ("low/src/b.rs", "pub struct B;\nfn f(_: super::a::A) {}\n");
    fails(
        "imports",
        &[b],
        &["a -> b  at low/src/a.rs:1: crate::b::B", "b -> a  at low/src/b.rs:2: super::a::A"],
    );
}

/// With a feature `a` is `a.rs`, without it `other.rs`, which closes the circle.
#[test]
fn a_circle_is_found_in_either_of_two_modules_that_cfg_chooses_from() {
    let lib = "pub mod b;\n#[cfg(feature = \"x\")]\npub mod a;\n#[cfg(not(feature = \"x\"))]\n#[path = \"other.rs\"]\npub mod a;\n";
    let changed = [
        ("low/src/lib.rs", lib),
        ("low/src/a.rs", "pub struct A;\n"),
        ("low/src/other.rs", "pub struct A(crate::b::B);\n"),
        ("low/src/b.rs", "pub struct B;\nfn f(_: super::a::A) {}\n"),
    ];
    fails("imports", &changed, &["crate::b::B", "b -> a  at low/src/b.rs:2: super::a::A"]);
}

#[test]
fn a_circle_is_found_between_descendants() {
    let a = ("low/src/a.rs", "mod deep;\npub struct A;\npub struct Other;\n");
    let deep = ("low/src/a/deep.rs", "fn f() { crate::b::g() }\n");
    let b = ("low/src/b.rs", "pub fn g() { let _ = crate::a::A; }\n");
    fails("imports", &[a, deep, b], &["a -> b  at low/src/a/deep.rs:1: crate::b::g"]);
}

#[test]
fn reexports_lead_to_the_module_that_defines() {
    let b = ("low/src/b.rs", "use crate::A as Renamed;\npub struct B;\n");
    fails("imports", &[b], &["b -> a  at low/src/b.rs:1: crate::A"]);
    let b = ("low/src/b.rs", "use crate::*;\npub struct B;\nfn f(_: Other) {}\n");
    fails("imports", &[b], &["b -> a  at low/src/b.rs:3: Other"]);
}

#[test]
fn paths_count_inside_macros() {
    let b = ("low/src/b.rs", "pub struct B;\nfn f() {\n    format!(\"{:?}\", crate::a::Other)\n}\n");
    fails("imports", &[b], &["b -> a  at low/src/b.rs:3: crate::a::Other"]);
}

#[test]
fn a_circle_with_the_parent_is_found() {
    let parent = ("high/src/parent/mod.rs", "mod child;\npub struct Parent;\nfn f(_: child::Child) {}\n");
    fails("imports", &[parent], &["parent -> parent::child", "parent::child -> parent", "1 with a parent"]);
}

#[test]
fn upward_dependencies_are_found() {
    for section in
        ["dependencies", "build-dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"]
    {
        let manifest =
            format!("[package]\nname = 'low'\n[{section}]\nup = {{ path = '../high', package = 'high' }}\n");
        fails("imports", &[("low/Cargo.toml", &manifest)], &["low -> high:", "points upwards"]);
    }
    let shipped =
        ("low/Cargo.toml", "[package]\nname = 'low'\n[dependencies]\ntestnet.path = '../testnet'\n");
    fails("imports", &[shipped], &["low -> testnet: [dependencies] points upwards"]);
}

#[test]
fn a_package_without_a_layer_is_found() {
    fails(
        "imports",
        &[("rules.toml", "layers = [['low']]\ntests = ['testnet']\n")],
        &["high: a package without a layer"],
    );
}

#[test]
fn the_program_is_glue() {
    let (main, other) = (("src/main.rs", "mod other;\n"), ("src/other.rs", "\n"));
    let members = ("Cargo.toml", "[package]\nname = 'high'\n[workspace]\nmembers = ['.', 'low']\n");
    fails("imports", &[main, other, members], &["src/other.rs: the program is only main, args and command"]);
}

#[test]
fn a_name_stands_for_one_type() {
    let b = ("low/src/b.rs", "pub struct B;\nfn f() { enum A {} }\n");
    fails("types", &[b], &["low: 2 types are named A: low/src/a.rs:2, low/src/b.rs:2"]);
    let rules = "layers = [['low'], ['high']]\ntests = ['testnet']\n[repeated_types]\n'low A' = 'a reason'\n";
    assert!(check("types", &[b, ("rules.toml", rules)]).0);
    fails("types", &[("rules.toml", rules)], &["low A: the rules except it"]);
}

#[test]
fn impl_blocks_stand_together() {
    let files = ["c", "d", "e"].map(|file| format!("low/src/{file}.rs"));
    let text = "impl super::a::A { fn g() {} }\n";
    let lib = ("low/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;\n");
    let mut changed: Vec<(&str, &str)> = files.iter().map(|file| (file.as_str(), text)).collect();
    changed.push(lib);
    fails("types", &changed, &["low: `impl A` in 4 files"]);
}

#[test]
fn long_functions_need_a_reason() {
    let long = format!("pub struct B;\npub fn long() {{\n{}}}\n", "    f();\n".repeat(59));
    let b = ("low/src/b.rs", long.as_str());
    fails("functions", &[b], &["low/src/b.rs:2: long has 61 lines"]);
    let limit = long.replacen("    f();\n", "", 1);
    fails("functions", &[("low/src/b.rs", &limit)], &["the median has 60 lines"]);
    let short: String = (0..9).map(|name| format!("fn f{name}() {{}}\n")).collect();
    let both = limit + &short;
    assert!(check("functions", &[("low/src/b.rs", &both)]).0);
}
