//! `fullview filter`

use super::support::{file, run};

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
fn what_is_no_text_of_bounded_length_is_refused() {
    for language in ["pf", "ipfw"] {
        let ran = run(&["filter", "check", "--language", language, "/dev/zero"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("/dev/zero") && ran.err.contains("longer than 64 MiB"), "{}", ran.err);
    }
}
