//! Runs the program as a user does: exit codes, messages, and small campaigns from end to end.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

mod builds;
mod campaigns;
mod filters;
mod folders;
mod imports;
mod profiles;
mod support;

use std::fs;
use std::time::Duration;

use fullview_plane::burst::Arena;
use fullview_plane::port::pcap::{CaptureReader, CaptureWriter};
use fullview_plane::wire::ipv4::Ipv4Packet;
use tempfile::TempDir;

use support::{SMALL, file, run};

/// Checks that `table show` refuses this content as bad input, with a message that has all of `words`.
fn refused(content: &[u8], words: &[&str]) {
    let (_dir, path) = file("table", content);
    let ran = run(&["table", "show", &path]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err);
    }
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let ran = run(&["--help"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("Examples:") && ran.out.contains("130"), "{}", ran.out);
    assert_eq!(run(&["nonsense"]).code, 2);
}

#[test]
fn every_command_has_an_example() {
    let commands = run(&["--help"]).out;
    let commands = commands.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        let ran = run(&["help", name]);
        assert!(ran.code == 0 && ran.out.contains("Example"), "{name}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn errors_of_tables_name_the_place_and_how_to_fix_them() {
    refused(b"10.0.0.0/8\n10.0.0.1/8\n", &["line 2", "10.0.0.0/8"]);
    refused(b"10.0.0.0/8 1\n192.0.2.0/24 1\n10.0.0.0/8 2\n", &["line 3", "10.0.0.0/8"]);
    refused(b"10.0.0.0/40\n", &["line 1", "40"]);
    refused(b"hello world\n", &["line 1"]);
    refused(b"", &["is empty"]);
    refused(&[0, 1, 2, 255, 254, 0, 0, 0, 7, 7, 7], &[]);
    refused(b"\x1f\x8b\x08\x00garbage", &[]);
}

#[test]
fn values_of_flags_are_refused_by_the_flag() {
    let (_dir, table) = file("table.txt", b"192.0.2.0/24 1\n");
    let capture = ["forward", "--table", &table, "--read", "in.pcap", "--write", "out.pcap"];
    let refused = |start: &[&str], [option, value]: [&str; 2], words: &str| {
        let ran = run(&[start, &[option, value]].concat());
        let said = ran.err.contains(option) && ran.err.contains(words);
        assert!(ran.code == 2 && said, "{option} {value}: {} {}", ran.code, ran.err);
    };
    refused(&capture, ["--address", "10.0.0.1/40"], "at most 32");
    refused(&capture, ["--mac", "01:00:00:00:00:00"], "not a station's address");
    let generate = ["generate", "--write", "out.pcap"];
    refused(&generate, ["--flows", "0"], "0 is not in");
    refused(&generate, ["--size", "59"], "");
    refused(&generate, ["--table", &table], "the model does not use it");
    refused(&generate, ["--source", "192.0.2.1"], "the model does not use it");
    refused(&["show", "counters"], ["--name", "../x"], "without /");
    let explain = ["filter", "explain", "rules", "icmp", "192.0.2.1", "192.0.2.2"];
    refused(&explain, ["--in", "sixteen-bytes-xx"], "1 to 15 bytes");
    refused(&explain, ["--in", ""], "1 to 15 bytes");
}

#[test]
fn an_address_that_no_interface_can_have_is_bad_input() {
    let (dir, table) = file("table.txt", b"192.0.2.0/24 1\n");
    let capture = dir.path().join("in.pcap");
    let capture = capture.to_str().unwrap();
    assert_eq!(run(&["generate", "--packets", "1", "--write", capture]).code, 0);
    let out = dir.path().join("out.pcap");
    let out = out.to_str().unwrap();
    let forward = ["forward", "--table", &table, "--read", capture, "--write", out, "--address"];
    let ran = run(&[&forward[..], &["224.0.0.1/24"]].concat());
    assert!(ran.code == 2 && ran.err.contains("--address: "), "{} {}", ran.code, ran.err);
}

#[test]
fn a_missing_capture_is_bad_input() {
    let (_dir, table) = file("table.txt", b"192.0.2.0/24 1\n");
    let forward = ["forward", "--table", &table, "--read", "no-such.pcap", "--write", "out.pcap"];
    for arguments in [&forward[..], &["trace", "--table", &table, "--read", "no-such.pcap"]] {
        let ran = run(arguments);
        assert!(ran.code == 2 && ran.err.contains("cannot read no-such.pcap"), "{}: {}", ran.code, ran.err);
    }
}

#[test]
fn a_missing_table_is_named() {
    let ran = run(&["table", "show", "no-such-table"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("no-such-table"), "{}", ran.err);
}

#[test]
fn too_many_next_hops_are_refused_with_the_line() {
    let many: String =
        (0..65_600u32).map(|n| format!("{}/32 {n}\n", std::net::Ipv4Addr::from(n << 8))).collect();
    refused(many.as_bytes(), &["65534", "65535"]);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_without_reading_it_all_into_memory() {
    refused(&vec![b'1'; 100 << 20], &["line 1"]);
}

#[test]
fn conversion_round_trips_through_text() {
    let (_dir, path) = file("table", b"10.0.0.0/8 192.0.2.1\n10.1.0.0/16 192.0.2.2\n2001:db8::/32 fe80::1\n");
    let text = run(&["table", "convert", &path, "--to", "text"]);
    assert_eq!((text.code, text.out.lines().count()), (0, 3), "{}", text.err);
    let (_again, second) = file("table", text.out.as_bytes());
    assert_eq!(run(&["table", "convert", &second, "--to", "text"]).out, text.out);
    let bird = run(&["table", "convert", &path, "--to", "bird"]);
    assert!(bird.out.contains("route 10.1.0.0/16"), "{}", bird.out);
}

#[test]
fn every_algorithm_verifies_against_a_small_table() {
    let (_dir, path) =
        file("table", b"0.0.0.0/0 1\n10.0.0.0/8 2\n10.1.2.3/32 3\n::/0 4\n2001:db8::/32 5\n::1/128 6\n");
    let ran = run(&["table", "verify", &path]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names = [
        "linear",
        "radix",
        "radix_lockless",
        "bsearch4",
        "bsearch6",
        "dpdk_lpm4",
        "dpdk_lpm6",
        "dxr",
        "poptrie",
        "dir18",
        "btree6",
    ];
    for name in names {
        assert!(ran.out.contains(name), "{name} is missing in: {}", ran.out);
    }
}

#[test]
fn ministat_has_its_own_options() {
    let (_dir, path) = file("a", b"1\n2\n3\n");
    let ran = run(&["ministat", "-n", &path]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("Median"), "{}", ran.out);
}

#[test]
fn generated_packets_are_forwarded_from_file_to_file() {
    let (dir, table) = file("table", b"198.18.0.0/16 1\n198.19.0.0/16 2\n");
    let (before, after) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    let made = run(&["generate", "--flows", "200", "--packets", "500", "--write", before]);
    assert_eq!(made.code, 0, "{}", made.err);
    let ran = run(&["forward", "--table", &table, "--read", before, "--write", after, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\"forwarded\": 500"), "{}", ran.out);
    assert_eq!(fs::metadata(before).unwrap().len(), fs::metadata(after).unwrap().len());
}

/// An ARP request for the router's address, and an echo request to it.
fn arp_and_echo_requests() -> [Vec<u8>; 2] {
    let (station, router) = ([192, 0, 2, 9], [192, 0, 2, 1]);
    let (from, to) = ([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 2]);
    let arp =
        [&[0xff; 6][..], &from, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &from, &station, &[0; 6], &router].concat();
    let mut echo =
        [&to[..], &from, &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 9, 1, 0, 0], &station, &router].concat();
    echo.extend([8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
    Ipv4Packet::new_unchecked(&mut echo[14..]).fill_checksum();
    [arp, echo]
}

#[test]
fn a_router_with_addresses_answers_for_them() {
    let (dir, table) = file("table", b"198.18.0.0/16 1\n");
    let (before, after) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let mut writer = CaptureWriter::create(&before).unwrap();
    arp_and_echo_requests().iter().for_each(|frame| writer.write(Duration::ZERO, frame).unwrap());
    writer.flush().unwrap();
    let files = [
        "forward",
        "--table",
        &table,
        "--read",
        before.to_str().unwrap(),
        "--write",
        after.to_str().unwrap(),
    ];
    let ran = run(&[&files[..], &["--address", "192.0.2.1/24"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (mut reader, mut arena) = (CaptureReader::open(&after).unwrap(), Arena::new(2));
    let types: Vec<_> = arena
        .packets()
        .filter_map(|slot| {
            reader
                .read_into(slot)
                .unwrap()
                .map(|_| (slot.frame()[12..14].to_vec(), slot.frame()[20..22].to_vec()))
        })
        .collect();
    assert_eq!(
        types,
        [(vec![8, 6], vec![0, 2]), (vec![8, 0], vec![0, 0])],
        "an ARP reply, and an IPv4 packet"
    );
    let wrong = run(&[&files[..], &["--address", "192.0.2.1"]].concat());
    assert_eq!((wrong.code, wrong.err.contains("192.0.2.1/24")), (2, true), "{}", wrong.err);
}

/// A capture has a global header of 24 bytes, and a header of 16 bytes before each packet.
#[test]
fn generated_packets_can_be_a_simple_imix() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("imix.pcap");
    let made = run(&["generate", "--size", "imix", "--packets", "24", "--write", path.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{}", made.err);
    let twelve = 12 * 16 + 7 * 60 + 4 * 590 + 1514;
    assert_eq!(fs::metadata(&path).unwrap().len(), 24 + 2 * twelve);
    let wrong = run(&["generate", "--size", "imx", "--write", path.to_str().unwrap()]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("\"smallest\" or \"imix\""), "{}", wrong.err);
}

/// The small campaign with the algorithm chosen by these preferences.
fn small_campaign_with(preferences: &str) -> String {
    let set = format!("set.router.algorithm = \"auto\"\nset.router.preferences = {preferences:?}");
    SMALL.replace("set.router.algorithm = \"radix\"", &set)
}

#[test]
fn a_calibration_decides_what_an_experiment_uses() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("preferences.toml");
    let preferences = path.to_str().unwrap();
    let ran = run(&["table", "calibrate", "--smoke", "--output", preferences]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for word in ["dpdk_lpm4", "inet6", "preference"] {
        assert!(ran.out.contains(word), "{word:?} is missing in: {}", ran.out);
    }
    let written = fs::read_to_string(&path).unwrap();
    // The measured preferences are replaced by known ones, so that the test does not depend on the measurement.
    let favoured: String = written
        .split("\n[")
        .map(|table| match table.starts_with("inet.linear") || !table.starts_with("inet") {
            true => table.to_owned() + "\n[",
            false => favour(table) + "\n[",
        })
        .collect();
    fs::write(&path, favoured.trim_end_matches("\n[")).unwrap();
    let (campaign_dir, campaign) = file("small.toml", small_campaign_with(preferences).as_bytes());
    let out = campaign_dir.path().join("out");
    let ran = run(&["bench", &campaign, "--out", out.to_str().unwrap()]);
    assert!(ran.code == 0 || ran.code == 3, "{}", ran.err);
    let report = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(report.contains("preferences") && report.contains("measured on"), "{report}");
    let switch =
        report.lines().find(|line| line.contains("switching algo to")).unwrap_or_else(|| panic!("{report}"));
    assert!(
        switch.contains("[fib_algo] inet.0 (bsearch4#1) rebuild_fd_flm: switching algo to dpdk_lpm4"),
        "{switch}"
    );
}

/// Points of one algorithm: bsearch4 is best for no routes at all, dpdk_lpm4 from two on, radix_lockless for IPv6.
fn favour(table: &str) -> String {
    let name = table.split(']').next().unwrap();
    let (none, some) = match name {
        "inet.bsearch4" => (200, 10),
        "inet.dpdk_lpm4" => (10, 200),
        "inet6.radix_lockless" => (250, 250),
        _ => (1, 1),
    };
    let figures = "batch-ns = 1.0, independent-ns = 1.0, update-us = 1.0, bytes = 1";
    format!(
        "{name}]\npoints = [{{ prefixes = 1, preference = {none}, {figures} }}, {{ prefixes = 2, preference = {some}, {figures} }}]"
    )
}

#[test]
fn errors_of_preferences_name_the_place_and_how_to_fix_them() {
    let head = "machine = \"m\"\ndate = \"d\"\nformula = \"f\"\nsmoke = false\ncore-share = 1.0\n";
    let refused = |content: &str, words: &[&str]| {
        let (_dir, preferences) = file("preferences.toml", content.as_bytes());
        let (dir, campaign) = file("small.toml", small_campaign_with(&preferences).as_bytes());
        let ran = run(&["bench", &campaign, "--out", dir.path().join("out").to_str().unwrap()]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        words.iter().for_each(|word| assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err));
    };
    refused("machine = 3\n", &["preferences.toml:1:11"]);
    refused(&format!("{head}[inet.radix]\npoints = []\n"), &["preferences.toml:7:10", "at least one"]);
    refused(head, &["nothing about radix for inet", "calibrate again"]);
}

/// Returns a packet from 192.0.2.9 to 198.51.100.7 with this TTL, UDP from port 1000 to 53. The checksum has to fit the
/// TTL.
fn packet(ttl: &str, checksum: &str) -> String {
    format!(
        "020000000002 020000000009 0800 4500001c 00000000 {ttl}11{checksum} c0000209 c6336407 03e80035 00080000"
    )
}

#[test]
fn a_packet_is_explained_by_a_table() {
    let (_dir, table) = file("view.txt", b"198.51.0.0/16 192.0.2.1\n198.51.100.0/24 192.0.2.2\n");
    let ran = run(&["trace", "--table", &table, "--packet", &packet("40", "8e8d")]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for words in ["table 0: 198.51.100.0/24 via next hop 2 (192.0.2.2)", "hops left 64 -> 63", "sent on"] {
        assert!(ran.out.contains(words), "{words:?} is missing in: {}", ran.out);
    }
    let ran = run(&["trace", "--table", &table, "--packet", &packet("01", "cd8d"), "--json"]);
    assert!(
        ran.out.contains("\"dropped: ttl_expired\"") && ran.out.contains("\"disagreement\":null"),
        "{}",
        ran.out
    );
    let ran = run(&["trace", "--table", &table, "--packet", "02 0"]);
    assert!(ran.code == 2 && ran.err.contains("odd number"), "{}", ran.err);
    let ran = run(&["trace", "--table", &table, "--packet", "00", "--match", "to somewhere"]);
    assert!(ran.code == 2 && ran.err.contains("\"to\" is not understood"), "{}", ran.err);
}

#[test]
fn the_packets_of_a_capture_are_explained_by_a_table() {
    let (dir, table) = file("view.txt", b"198.18.0.0/15 1\n");
    let capture = dir.path().join("in.pcap");
    let capture = capture.to_str().unwrap();
    assert_eq!(run(&["generate", "--flows", "5", "--packets", "20", "--write", capture]).code, 0);
    let ran = run(&["trace", "--table", &table, "--read", capture, "--count", "7", "--match", "udp"]);
    assert_eq!((ran.code, ran.out.matches("sent on").count()), (0, 7), "{}{}", ran.out, ran.err);
}

#[test]
fn the_example_configurations_are_correct_and_mistakes_have_their_place() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/edge.toml");
    let ran = run(&["check-config", example]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("correct; forwards between eth1, eth2"), "{}", ran.out);
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/static.toml");
    let ran = run(&["check-config", example]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("correct; forwards between fv-left, fv-right"), "{}", ran.out);
    let (_dir, wrong) =
        file("wrong.toml", b"[router]\ninterfaces = [\"eth1\"]\n\n[confine]\nsecomp = true\n");
    let ran = run(&["check-config", &wrong]);
    assert_eq!(ran.code, 2);
    for words in ["wrong.toml", "line 5, column 1", "secomp", "seccomp"] {
        assert!(ran.err.contains(words), "{words:?} is missing in: {}", ran.err);
    }
    let ran = run(&["forward", "--config", &wrong]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let (_dir, wrong) = file(
        "wrong.toml",
        b"[router]\ninterfaces = [\"lo\"]\nwait = true\n[confine]\nuser = \"no-such-user\"\n",
    );
    let ran = run(&["check-config", &wrong]);
    assert!(
        ran.code == 2 && ran.err.contains("wrong.toml: confine.user: there is no user no-such-user"),
        "{}",
        ran.err
    );
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    let of_a_running_router: [&[&str]; 14] = [
        &["--engine", "user"],
        &["--port", "packet"],
        &["--no-need-wakeup"],
        &["--busy-poll", "20"],
        &["--netlink-buffer", "4096"],
        &["--workers", "2"],
        &["--name", "edge"],
        &["--control", "control.sock"],
        &["--metrics", "127.0.0.1:9198"],
        &["--capture-drops", "drops.pcapng"],
        &["--capture-limit", "4096"],
        &["--capture-rate", "10"],
        &["--user", "nobody"],
        &["--no-seccomp"],
    ];
    let of_a_capture: [&[&str]; 4] = [
        &["--table", "table.txt"],
        &["--write", "out.pcap"],
        &["--mac", "02:00:00:00:00:09"],
        &["--address", "192.0.2.1/24"],
    ];
    let refused = |start: &[&str], option: &[&str]| {
        let ran = run(&[&["forward"], start, option].concat());
        let said = ran.err.contains("cannot be used with") && ran.err.contains(option[0]);
        assert!(ran.code == 2 && said, "{start:?} {option:?}: {} {}", ran.code, ran.err);
    };
    let capture = ["--table", "table.txt", "--read", "in.pcap", "--write", "out.pcap"];
    of_a_running_router.iter().for_each(|option| refused(&capture, option));
    of_a_running_router
        .iter()
        .chain(&of_a_capture)
        .for_each(|option| refused(&["--config", "edge.toml"], option));
    of_a_capture.iter().for_each(|option| refused(&["--interfaces", "eth1"], option));
    let ran = run(&["trace", "--mac", "02:00:00:00:00:09"]);
    assert!(
        ran.code == 2 && ran.err.contains("--table"),
        "a running router has its own MAC: {} {}",
        ran.code,
        ran.err
    );
}

#[test]
fn errors_of_a_standalone_configuration_name_their_place() {
    let start = "[router]\nkernel = false\nport = \"tap\"\ninterfaces = [\"t0\"]\n[interface.t0]\naddress = [\"192.0.2.1/24\"]\n";
    for (more, words) in [
        (
            "[[route]]\nto = \"10.0.0.0/8\"\nvia = \"10.9.9.9\"\n",
            "line 8, column 6, \"10.0.0.0/8\": via 10.9.9.9",
        ),
        ("[feed]\nfile = \"/nonexistent\"\ngateways = [\"192.0.2.9\"]\n", "/nonexistent"),
    ] {
        let (_dir, wrong) = file("wrong.toml", (start.to_owned() + more).as_bytes());
        for command in [&["check-config", &*wrong][..], &["forward", "--config", &wrong]] {
            let ran = run(command);
            assert!(ran.code == 2 && ran.err.contains(words), "{}: {}", ran.code, ran.err);
        }
    }
    let (dir, view) = file("view.txt", b"2001:db8:1::/48 1\n");
    let wrong = dir.path().join("wrong.toml");
    fs::write(&wrong, format!("{start}[feed]\nfile = \"{view}\"\ngateways = [\"192.0.2.9\"]\n")).unwrap();
    let ran = run(&["check-config", wrong.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("has inet6 routes, and no gateway is inet6"), "{}", ran.err);
}

#[test]
fn check_config_reads_the_rules_of_the_filter() {
    let (dir, rules) = file("rules", b"block all\npass in on t0 to (t0)\n");
    let config = dir.path().join("router.toml");
    let text = format!(
        "[router]\nkernel = false\nport = \"tap\"\ninterfaces = [\"t0\"]\n[interface.t0]\n\
         address = [\"192.0.2.1/24\"]\n[filter]\nlanguage = \"pf\"\nfile = \"{rules}\"\n"
    );
    fs::write(&config, text).unwrap();
    let check = || run(&["check-config", config.to_str().unwrap()]);
    assert_eq!((check().code, check().err.as_str()), (0, ""));
    for (text, words) in [
        ("block all\npass everything\n", format!("{rules}:2:6")),
        ("nat on t0 inet from any to any -> 192.0.2.9 bitmask\npass nothing\n", format!("{rules}:2:6")),
    ] {
        fs::write(&rules, text).unwrap();
        assert!(check().code == 2 && check().err.contains(&words), "{text}: {}", check().err);
    }
    fs::write(&rules, "nat on t0 inet from any to any -> (t0)\n").unwrap();
    assert_eq!((check().code, check().err.as_str()), (0, ""));
    fs::remove_file(&rules).unwrap();
    assert!(check().code == 2 && check().err.contains(&rules), "{}", check().err);
}

#[test]
fn commands_that_ask_a_router_fail_without_one() {
    for command in [&["show", "fib"][..], &["trace"], &["reload"], &["capture-drops", "--write", "/dev/null"]]
    {
        let ran = run(&[command, &["--control", "/nonexistent/fullview.sock"]].concat());
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains("/nonexistent/fullview.sock: no router answers here"), "{}", ran.err);
    }
}

#[test]
fn routes_are_shown_by_an_address_or_a_right_prefix() {
    for (what, words) in [
        ("nonsense", "give an address, or a prefix"),
        ("192.0.2.0/33", "\"33\" is not a number from 0 to 32"),
        ("192.0.2.1/24", "192.0.2.0/24"),
        ("2001:db8::/129", "\"129\" is not a number from 0 to 128"),
    ] {
        let ran = run(&["show", "routes", what, "--control", "/nonexistent/fullview.sock"]);
        assert!(ran.code == 2 && ran.err.contains(words), "{what}: {} {}", ran.code, ran.err);
    }
}

#[test]
fn the_manual_and_the_completions_have_every_command() {
    let (manual, script) = (run(&["man"]), run(&["completions", "bash"]));
    for command in ["show", "trace", "capture", "reload", "check"] {
        assert!(manual.out.contains(command) && script.out.contains(command), "{command}");
    }
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("man1");
    assert_eq!(run(&["man", "--out", folder.to_str().unwrap()]).code, 0);
    let page = |name: &str| fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
    let main = page("fullview").replace('\\', "");
    let named: Vec<&str> = main.lines().filter_map(|line| line.strip_suffix("(1)")).collect();
    assert!(named.len() > 15 && named.contains(&"fullview-bench"), "{main}");
    assert!(named.iter().all(|name| page(name).contains("OPTIONS")), "{named:?}");
    assert!(page("fullview-bench").contains("against") && page("fullview-filter-check").contains("language"));
}

#[test]
fn a_standard_output_that_is_full_is_named() {
    for arguments in [&["man"][..], &["completions", "bash"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fullview"));
        let ran = command.args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && said.contains("standard output: cannot write"), "{said}");
    }
}

/// A limit of the file's size stands for a full disk.
#[test]
fn a_table_that_cannot_be_written_as_a_whole_leaves_the_one_before() {
    let dir = TempDir::new().unwrap();
    let output = dir.path().join("table.txt");
    fs::write(&output, "192.0.2.0/24 1\n").unwrap();
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" table synthesize --inet 20000 --output \"$1\"";
    let mut shell = assert_cmd::Command::new("sh");
    shell.args(["-c", limited]).arg(assert_cmd::cargo::cargo_bin("fullview")).arg(&output);
    let ended = shell.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("table.txt: cannot write"), "{said}");
    assert_eq!(fs::read_to_string(&output).unwrap(), "192.0.2.0/24 1\n");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "half a table is left");
    let ran = run(&["table", "synthesize", "--inet", "20000", "--output", output.to_str().unwrap()]);
    assert_eq!(
        (ran.code, fs::read_to_string(&output).unwrap().lines().count() > 20_000),
        (0, true),
        "{}",
        ran.err
    );
}

#[test]
fn a_table_is_written_to_a_device_and_through_a_link() {
    assert_eq!(run(&["table", "synthesize", "--inet", "9", "--output", "/dev/null"]).code, 0);
    let (dir, table) = file("table.txt", b"");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&table, &link).unwrap();
    assert_eq!(run(&["table", "synthesize", "--inet", "9", "--output", link.to_str().unwrap()]).code, 0);
    assert!(link.is_symlink() && fs::metadata(&table).unwrap().len() > 0);
}
