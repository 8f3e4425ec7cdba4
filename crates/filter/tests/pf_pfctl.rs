//! FreeBSD's own tests of pfctl: what each rule set prints, and which ones are refused.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use fullview_filter::pf::error::{PfError, PfErrorKind};
use fullview_filter::pf::files::FileSystem;
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use fullview_filter::pf::load::load;
use fullview_testnet::shared;

/// The sets with something that this filter does not have, and the word for it.
const REFUSED: &[(&str, &str)] = &[
    ("pf1025", "af-to"),    // translates between the families
    ("pf1056", "af-to"),    // translates between the families
    ("pf1067", "route-to"), // chooses a route by rule; FreeBSD refuses it on block rules
    ("pf1073", "route-to"), // chooses a route by rule
    ("pf1074", "route-to"), // chooses a route by rule; FreeBSD refuses the address of another family
];

/// The interfaces that the sets name, with the addresses that FreeBSD's tests give them.
fn machine() -> HostFacts {
    let vlan = |name: &str| HostInterface {
        name: name.to_owned(),
        groups: vec!["vlan".to_owned()],
        loopback: false,
        addresses: vec![
            address(Ipv4Addr::new(203, 0, 113, 5).into(), 24),
            address(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5).into(), 64),
            address("2001:db8::cb00:7105".parse().unwrap(), 64),
        ],
    };
    let mut interfaces = vec![loopback()];
    interfaces.extend(["vlan1057", "vlan1058", "vlan1059", "vlan1061", "vlan1064"].map(vlan));
    HostFacts { interfaces }
}

fn loopback() -> HostInterface {
    HostInterface {
        name: "lo0".to_owned(),
        groups: vec!["lo".to_owned()],
        loopback: true,
        addresses: vec![
            address(Ipv6Addr::LOCALHOST.into(), 128),
            address(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into(), 64),
            address(Ipv4Addr::LOCALHOST.into(), 8),
        ],
    }
}

fn address(address: IpAddr, length: u8) -> HostAddress {
    HostAddress { address, length, broadcast: None, peer: None }
}

fn parse(folder: &Path, file: &str) -> Result<String, PfError> {
    let files = FileSystem { folder: folder.to_owned() };
    load(file, &files, &machine()).map(|config| config.to_string())
}

/// The names of the files with an extension, without it.
fn sets(folder: &Path, extension: &str) -> Vec<String> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_kind = paths.filter(|path| path.extension().is_some_and(|one| one == extension));
    let mut names: Vec<String> =
        of_kind.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn refused_word(set: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| *name == set).map(|(_, word)| *word)
}

fn folder(name: &str) -> Option<PathBuf> {
    shared::data(&format!("filter/{name}"))
}

#[test]
fn accepted_sets_print_what_pfctl_prints() {
    let Some(folder) = folder("pfctl") else { return };
    let accepted = sets(&folder, "ok").into_iter().filter(|set| refused_word(set).is_none());
    let mut wrong = Vec::new();
    for set in accepted {
        let expected = fs::read_to_string(folder.join(format!("{set}.ok"))).unwrap();
        let printed = parse(&folder, &format!("{set}.in")).unwrap_or_else(|error| error.to_string());
        if printed != expected {
            wrong.push(format!("{set}\n{printed}instead of\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sets_with_what_is_not_supported_are_refused_by_the_word() {
    let Some(folder) = folder("pfctl") else { return };
    for (set, expected) in REFUSED {
        let error = parse(&folder, &format!("{set}.in")).unwrap_err();
        let PfErrorKind::Refused { word, .. } = &error.kind else { panic!("{set}: {error}") };
        assert_eq!(word, expected, "{set}: {error}");
        assert!(error.to_string().starts_with(&format!("{set}.in:1:")), "{error}");
    }
}

#[test]
fn wrong_sets_are_refused_for_their_reason() {
    let Some(folder) = folder("pfctl") else { return };
    for set in sets(&folder, "fail").iter().filter(|set| refused_word(set).is_none()) {
        let reason = fs::read_to_string(folder.join(format!("{set}.fail"))).unwrap();
        let error = parse(&folder, &format!("{set}.in")).unwrap_err().to_string();
        assert!(without_columns(&error).contains(reason.trim_end()), "{set}: {error}instead of\n{reason}");
    }
}

/// pfctl's messages have no columns.
fn without_columns(message: &str) -> String {
    let mut parts: Vec<&str> = message.splitn(4, ':').collect();
    parts.remove(2);
    parts.join(":")
}

#[test]
fn what_is_printed_prints_itself() {
    for name in ["pfctl", "pfctl-by-hand"] {
        let Some(folder) = folder(name) else { return };
        for set in sets(&folder, "ok").iter().filter(|set| refused_word(set).is_none()) {
            let expected = fs::read_to_string(folder.join(format!("{set}.ok"))).unwrap();
            assert_eq!(parse(&folder, &format!("{set}.ok")).unwrap(), expected, "{name}/{set}");
        }
    }
}

#[test]
fn sets_without_an_expected_print_can_be_printed_and_read_again() {
    let Some(folder) = folder("pfctl-by-hand") else { return };
    let copies = tempfile::tempdir().unwrap();
    for set in sets(&folder, "in") {
        let printed = parse(&folder, &format!("{set}.in")).unwrap();
        fs::write(copies.path().join(&set), &printed).unwrap();
        assert_eq!(parse(copies.path(), &set).unwrap(), printed, "{set}");
    }
}
