//! `fullview filter`

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use super::support::{Ran, file, fullview, run};

#[test]
fn rules_are_printed_as_pfctl_prints_them() {
    let (_dir, path) =
        file("pf.conf", b"web = \"{ 80, 443 }\"\npass in on eth0 proto tcp to 192.0.2.1 port $web\n");
    let printed = "web = \"{ 80, 443 }\"
pass in on eth0 inet proto tcp from any to 192.0.2.1 port = http flags S/SA keep state
pass in on eth0 inet proto tcp from any to 192.0.2.1 port = https flags S/SA keep state
";
    let ran = run(&["filter", "check", "-v", &path]);
    assert_eq!((ran.code, ran.out.as_str()), (0, printed), "{}", ran.err);
    let ran = run(&["filter", "check", &path]);
    assert_eq!((ran.code, ran.out), (0, format!("{path}: correct; 2 rules\n")), "{}", ran.err);
}

#[test]
fn interfaces_of_this_host_stand_for_their_addresses() {
    let (_dir, path) = file("pf.conf", b"block from ! lo:network to self\n");
    let ran = run(&["filter", "check", "-v", &path]);
    assert!(
        ran.out.starts_with("block drop inet from ! 127.0.0.0/8 to 127.0.0.1\n"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn rules_that_the_router_cannot_enforce_are_printed_and_refused() {
    let (_dir, path) = file("pf.conf", b"pass out user 5\n");
    let ran = run(&["filter", "check", "-v", &path]);
    assert_eq!((ran.code, ran.out.as_str()), (2, "pass out all user = 5 flags S/SA keep state\n"));
    assert!(ran.err.contains(":1:1:") && ran.err.contains("'user' is not supported"), "{}", ran.err);
}

#[test]
fn wrong_rules_are_wrong_whether_or_not_they_can_be_printed() {
    let (_dir, path) = file("pf.conf", b"pass out user 5\n");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for out in [Stdio::from(full), closed.into()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
        let ran = command.args(["filter", "check", "-v", &path]).stdout(out).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains("'user' is not supported"), "{said}");
    }
}

#[test]
fn errors_name_the_place_and_how_to_fix_them() {
    let lines: &[(&[u8], &[&str])] = &[
        (
            b"pass\npass out route-to (em0 192.0.2.1)\n",
            &[":2:10:", "'route-to' is not supported", "route instead"],
        ),
        (b"pass in proto tcp to port 9:8\n", &[":1:27:", "invalid port range 9:8", "lower port first"]),
        (b"block in onn em0\n", &[":1:10:", "syntax error", "'onn'"]),
        (b"block in on $nowhere\n", &[":1:13:", "macro 'nowhere' is not defined", "nowhere = "]),
        (b"include \"absent\"\n", &[":1:9:", "cannot read 'absent'", "path"]),
    ];
    for (text, words) in lines {
        let (_dir, path) = file("pf.conf", text);
        let ran = run(&["filter", "check", &path]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        let words = words.iter().copied().chain([path.as_str()]);
        words.for_each(|word| assert!(ran.err.contains(word), "{word:?} is missing in: {}", ran.err));
    }
}

#[test]
fn scripts_of_ipfw_are_printed_as_ipfw_lists_them() {
    let script = b"#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\n${fwcmd} -f flush\n${fwcmd} add 3000 allow ip from any to any keep-state\n";
    let (_dir, path) = file("ipfw.rules", script);
    let ran = run(&["filter", "check", "-v", "--language", "ipfw", &path]);
    let printed = "03000 allow ip from any to any keep-state :default\n65535 deny ip from any to any\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, printed), "{}", ran.err);
    assert_eq!(run(&["filter", "check", "--language", "ipfw", "absent.rules"]).code, 2);
    let (_dir, path) = file("ipfw.rules", b"ipfw add 10 pipe 1 ip from any to any\n");
    let ran = run(&["filter", "check", "--language", "ipfw", &path]);
    assert!(ran.code == 2 && ran.err.contains(&format!("{path}:1:")), "{} {}", ran.code, ran.err);
}

#[test]
fn bytes_that_are_no_text_have_their_place() {
    let (dir, path) = file("rules", b"# a\n#\xff\n");
    for language in ["pf", "ipfw"] {
        let ran = run(&["filter", "check", "--language", language, &path]);
        assert!(ran.code == 2 && ran.err.contains("line 2, column 2"), "{}", ran.err);
    }
    let name = dir.path().join(OsStr::from_bytes(b"n\xff"));
    fs::copy(&path, &name).unwrap();
    let ran = Ran::of(&fullview().args(["filter", "check"]).arg(&name).output().unwrap());
    assert!(ran.code == 2 && ran.err.contains("name is not UTF-8; rename it"), "{}", ran.err);
}

#[test]
fn what_is_no_text_of_bounded_length_is_refused() {
    for language in ["pf", "ipfw"] {
        let ran = run(&["filter", "check", "--language", language, "/dev/zero"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("/dev/zero") && ran.err.contains("longer than 64 MiB"), "{}", ran.err);
    }
}

#[test]
fn a_packet_is_explained_rule_by_rule() {
    let rules = b"block\npass in on eth8 proto tcp to port 22\npass in on eth8 inet proto udp from 192.0.2.0/24 to any port 53\n\
                  pass out on eth9\n";
    let (_dir, path) = file("pf.conf", rules);
    let ask =
        |more: &[&str]| run(&[&["filter", "explain", &path, "--in", "eth8", "--out", "eth9"], more].concat());
    let ran = ask(&["udp", "192.0.2.1:1000", "198.51.100.7:53"]);
    for line in [
        "in on eth8: the packet passes by rule 2, which makes a state\n",
        "port = domain keep state: matches, and decides\n",
        "out on eth9: the packet passes by rule 3, which makes a state\n",
    ] {
        assert!(ran.code == 0 && ran.out.contains(line), "{line:?} is missing in: {}{}", ran.out, ran.err);
    }
    let ran = ask(&["-v", "udp", "192.0.2.1:1000", "198.51.100.7:54"]);
    assert!(ran.out.contains("in on eth8: the packet is dropped (filter_rule) by rule 0"), "{}", ran.out);
    assert!(ran.out.contains("keep state: does not match the destination port\n"), "{}", ran.out);
    assert!(!ran.out.contains("out on eth9: "), "{}", ran.out);
    let ran = ask(&["udp", "192.0.2.1", "198.51.100.7:54"]);
    assert!(ran.code == 2 && ran.err.contains("need ports"), "{}", ran.err);
    let ran = ask(&["icmp", "192.0.2.1", "2001:db8::1"]);
    assert!(ran.code == 2 && ran.err.contains("one address family"), "{}", ran.err);
}

#[test]
fn states_of_ipfw_are_explained_too() {
    let script = b"ipfw add 10 count ip from any to any\nipfw add 20 deny tcp from any to any 22\n\
                   ipfw add 30 allow ip from any to any keep-state\n";
    let (_dir, path) = file("ipfw.rules", script);
    let explain =
        ["filter", "explain", "--language", "ipfw", "--json", &path, "--in", "eth8", "--out", "eth9", "tcp"];
    let ran = run(&[&explain[..], &["192.0.2.1:1000", "198.51.100.7:23"]].concat());
    let passes: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(passes[0]["answer"], "passes by rule 30, which makes a state", "{passes}");
    let rules: Vec<&serde_json::Value> =
        passes[0]["rules"].as_array().unwrap().iter().map(|rule| &rule["number"]).collect();
    assert_eq!(rules, [10, 20, 30]);
    assert_eq!(passes[0]["rules"][1]["mismatch"], "the destination port");
    assert_eq!(passes[1]["answer"], "passes by its state, which rule 30 made", "{passes}");
}

#[test]
fn rules_are_explained_as_far_as_they_are_tried() {
    let rules = b"match in on eth8 tag A\npass in tagged A\nblock in quick proto tcp to port 22\npass in\n\
                  pass out tagged A\n";
    let (_dir, path) = file("pf.conf", rules);
    let passes = |to: &str| {
        let ends = ["--json", "--in", "eth8", "--out", "eth9", "tcp", "192.0.2.1:1000", to];
        let ran = run(&[&["filter", "explain", &path][..], &ends].concat());
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()
    };
    let numbers = |pass: &serde_json::Value| {
        // Before the rules of the file comes the one about packets with options.
        let rules = pass["rules"].as_array().unwrap().iter().skip(1);
        rules.map(|rule| (rule["number"].as_u64().unwrap(), rule["mismatch"].is_null())).collect::<Vec<_>>()
    };
    let stopped = passes("198.51.100.7:22");
    assert_eq!(numbers(&stopped[0]), [(0, true), (1, true), (2, true)], "rule 2 is quick: {stopped}");
    let passed = passes("198.51.100.7:23");
    assert_eq!(numbers(&passed[0]), [(0, true), (1, true), (2, false), (3, true), (4, false)], "{passed}");
    assert_eq!(numbers(&passed[1])[4], (4, true), "the tag stays with the packet: {passed}");
}

#[test]
fn chance_decides_in_explanations_as_for_the_packet() {
    for probability in [20, 50, 80] {
        let rule = format!("pass probability {probability}%\n");
        let rules = format!("block\n{}", rule.repeat(12));
        let (_dir, path) = file("pf.conf", rules.as_bytes());
        let ends = ["--json", "--in", "eth8", "--out", "eth9", "udp", "192.0.2.1:1000", "198.51.100.7:53"];
        let ran = run(&[&["filter", "explain", &path][..], &ends].concat());
        let passes: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        for pass in passes.as_array().unwrap() {
            let last =
                pass["rules"].as_array().unwrap().iter().rfind(|rule| rule["mismatch"].is_null()).unwrap();
            assert_eq!(
                (&last["decides"], &last["number"]),
                (&true.into(), &pass["rule"]["number"]),
                "{pass}"
            );
        }
    }
}

#[test]
fn names_of_interfaces_that_this_host_lacks_are_a_warning() {
    let rules = b"set skip on lo0\npass in on nowhere7\npass out on { lo nowhere7 } to (nowhere8)\n\
                  anchor \"a\" on nowhere9 {\n pass in received-on nowhere10\n}\n";
    let (_dir, path) = file("pf.conf", rules);
    let ran = run(&["filter", "check", &path]);
    assert_eq!((ran.code, ran.out), (0, format!("{path}: correct; 4 rules\n")), "{}", ran.err);
    let expected = [(2, "nowhere7"), (3, "nowhere8"), (4, "nowhere9"), (5, "nowhere10")];
    assert_eq!(ran.err.lines().count(), expected.len(), "{}", ran.err);
    for (line, (number, name)) in ran.err.lines().zip(expected) {
        let place = format!("fullview: warning: {path}:{number}:");
        assert!(
            line.starts_with(&place) && line.contains(&format!("no interface is named {name}; there are")),
            "{line}"
        );
        assert!(line.contains(" lo"), "{line}");
    }
    let (_dir, path) = file(
        "ipfw.rules",
        b"add 10 allow ip from any to any via nowhere*\nadd allow ip from any to any via lo*\n",
    );
    let ran = run(&["filter", "check", "--language", "ipfw", &path]);
    let warned = format!("fullview: warning: {path}: rule 10: no interface is named nowhere*; there are");
    assert!(ran.code == 0 && ran.err.starts_with(&warned) && ran.err.lines().count() == 1, "{}", ran.err);
    let (_dir, path) = file("ipfw.rules", b"add 10 nat 3 ip from any to any\n");
    let ran = run(&["filter", "check", "--language", "ipfw", &path]);
    let warned =
        format!("fullview: warning: {path}: rule 10: drops its packets, as there is no nat instance 3;");
    assert!(ran.code == 0 && ran.err.starts_with(&warned) && ran.err.lines().count() == 1, "{}", ran.err);
}

#[test]
fn what_no_router_enforces_is_refused_by_its_place() {
    for (language, rules, place) in [
        ("pf", "pass in proto tcp keep state (max-src-conn 5, overload <bad>)\n", "1:1: 'overload'"),
        ("ipfw", "add unreach needfrag 1400 ip from any to any\n", "1:22: `1400`"),
    ] {
        let (_dir, path) = file("rules", rules.as_bytes());
        let ran = run(&["filter", "check", "--language", language, &path]);
        assert!(
            ran.code == 2 && ran.err.contains(&format!("{path}:{place} is not supported")),
            "{}",
            ran.err
        );
    }
}

#[test]
fn questions_about_tables_need_arguments_that_make_sense() {
    let (_dir, file) = file("addresses", b"192.0.2.1\n192.0.2.0/24 # a network\n192.0.2.0/40\n");
    for (line, words) in [
        ("bad add", "required arguments were not provided"),
        ("bad add 192.0.2.256", "'192.0.2.256' is no address and no prefix"),
        ("bad test 192.0.2.0/24", "invalid value '192.0.2.0/24' for '<ADDRESS>'"),
        ("bad remove 192.0.2.1", "unexpected argument 'remove'"),
        ("bad replace --file absent.txt", "absent.txt: cannot read"),
        (
            &format!("bad replace --file {file}"),
            &format!("{file}:3: '192.0.2.0/40' is no address and no prefix"),
        ),
        ("bad test 192.0.2.1 --control absent.sock", "absent.sock: no router answers here"),
    ] {
        let ran = run(&[&["filter", "table"][..], &line.split(' ').collect::<Vec<_>>()].concat());
        assert!(ran.code == 2 && ran.err.contains(words), "{line}: {}: {}", ran.code, ran.err);
    }
    let ran = run(&["filter", "table", "bad", "show", "--control", "absent.sock"]);
    assert!(ran.code == 1 && ran.err.contains("no router answers here"), "{}: {}", ran.code, ran.err);
    let ran = run(&["show", "states", "80", "--control", "absent.sock"]);
    assert!(
        ran.code == 2 && ran.err.contains("'80' is no address and no prefix"),
        "{}: {}",
        ran.code,
        ran.err
    );
    let ran = run(&["show", "states", "--protocol", "everything", "--control", "absent.sock"]);
    assert!(ran.code == 2 && ran.err.contains("give a name, as tcp, udp"), "{}: {}", ran.code, ran.err);
}
