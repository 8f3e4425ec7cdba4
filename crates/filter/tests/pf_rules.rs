//! What rules mean, by what they print as; and what is refused, with the place.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

use std::collections::HashMap;
use std::io;

use fullview_filter::interfaces::Interfaces;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;

/// Files by name; the rule set is `rules`.
struct Files(HashMap<&'static str, &'static str>);

impl RulesetFiles for Files {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn interface(name: &str, groups: &[&str], addresses: &[(&str, u8)]) -> HostInterface {
    let address = |(text, length): &(&str, u8)| HostAddress {
        address: text.parse().unwrap(),
        length: *length,
        broadcast: text.contains('.').then(|| "192.0.2.255".parse().unwrap()),
        peer: None,
    };
    let addresses = addresses.iter().map(address).collect();
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    HostInterface { name: name.to_owned(), groups, loopback: name == "lo0", addresses }
}

fn machine() -> HostFacts {
    let em0 = [("192.0.2.1", 24), ("192.0.2.2", 24), ("fe80::1", 64), ("2001:db8::1", 64)];
    HostFacts {
        interfaces: vec![
            interface("lo0", &[], &[("127.0.0.1", 8), ("::1", 128)]),
            interface("em0", &["egress"], &em0),
            interface("em1", &[], &[]),
        ],
    }
}

fn read(rules: &'static str, more: &[(&'static str, &'static str)]) -> String {
    let mut files: HashMap<_, _> = more.iter().copied().collect();
    files.insert("rules", rules);
    match load("rules", &Files(files), &machine()) {
        Ok(config) => config.to_string(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn prints(rules: &'static str, expected: &str) {
    let lines: Vec<String> = expected.lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(read(rules, &[]), lines.concat());
}

#[track_caller]
fn refuses(rules: &'static str, words: &[&str]) {
    let error = read(rules, &[]);
    words.iter().for_each(|word| assert!(error.contains(word), "{word:?} is missing in: {error}"));
}

#[test]
fn interfaces_stand_for_their_addresses() {
    prints(
        "block from em0:network to em0:0",
        "block drop inet from 192.0.2.0/24 to 192.0.2.1
         block drop inet from 192.0.2.0/24 to 192.0.2.1
         block drop inet6 from 2001:db8::/64 to 2001:db8::1",
    );
    prints("block inet from egress:broadcast:0", "block drop inet from 192.0.2.255 to any");
    prints(
        "block inet6 from em0",
        "block drop on em0 inet6 from fe80::1 to any
         block drop inet6 from 2001:db8::1 to any",
    );
}

#[test]
fn antispoof_blocks_addresses_of_an_interface_elsewhere() {
    prints(
        "antispoof log quick for lo0 inet",
        "block drop in log quick on ! lo0 inet from 127.0.0.0/8 to any",
    );
    prints(
        "antispoof for (em0) label \"spoofed\"",
        "block drop in on ! em0 from (em0:network) to any label \"spoofed\"
         block drop in from (em0) to any label \"spoofed\"",
    );
    refuses("antispoof for em1", &["rules:1:15:", "em1:network"]);
}

#[test]
fn rules_of_sctp_have_ports() {
    prints(
        "pass in proto { tcp sctp } to port 80",
        "pass in proto tcp from any to any port = http flags S/SA keep state
         pass in proto sctp from any to any port = http keep state",
    );
    refuses("pass in proto icmp to port 80", &["rules:1:1: port only applies to tcp/udp/sctp", "proto sctp"]);
}

#[test]
fn macros_join_with_what_follows_them() {
    prints(
        "net = \"192.0.2\"\nblock from $net.7/32 # host\n",
        "net = \"192.0.2\"\nblock drop inet from 192.0.2.7 to any",
    );
    prints(
        "a = \"{ 10.0.0.1\"\nblock \\\n  from $a, 10.0.0.2 }",
        "a = \"{ 10.0.0.1\"
        block drop inet from 10.0.0.1 to any
        block drop inet from 10.0.0.2 to any",
    );
}

#[test]
fn earlier_options_decide_for_later_rules() {
    prints(
        "set block-policy return\nset state-policy if-bound\nset state-defaults no-sync\nblock\npass\npass keep state (floating)",
        "set block-policy return
         set state-policy if-bound
         block return all
         pass all flags S/SA keep state (no-sync, if-bound)
         pass all flags S/SA keep state",
    );
}

#[test]
fn rules_are_printed_by_kind_and_must_stand_in_this_order() {
    prints(
        "set require-order no\npass\nrdr on em0 inet from any to any -> 10.0.0.1\nnat on em0 from 10/8 to any -> em0:0\nscrub in",
        "set require-order no
         scrub in all fragment reassemble
         nat on em0 inet from 10.0.0.0/8 to any -> 192.0.2.1
         rdr on em0 inet all -> 10.0.0.1
         pass all flags S/SA keep state",
    );
    refuses("pass\nset limit states 5", &["rules:2:1:", "in order", "require-order"]);
}

#[test]
fn binat_to_is_a_rule_for_each_direction() {
    prints(
        "match on em0 from 10.0.0.7 to any tag T binat-to 192.0.2.7",
        "match out on em0 inet from 10.0.0.7 to any tag T nat-to 192.0.2.7 static-port
         match in on em0 inet from any to 192.0.2.7 tag T rdr-to 10.0.0.7",
    );
    refuses("match from 10/8 to any binat-to 192.0.2.7", &["rules:1:1:", "same length"]);
    refuses("match in from 10.0.0.1 to any binat-to 192.0.2.7", &["rules:1:1:", "direction"]);
}

#[test]
fn limits_of_states_bring_their_defaults() {
    prints(
        "pass proto tcp keep state (max-src-conn-rate 5/30, overload <bad> flush)",
        "pass proto tcp all flags S/SA keep state (source-track rule, max-src-conn-rate 5/30, overload <bad> flush, src.track 30)",
    );
    refuses("pass keep state (overload <bad>)", &["'overload' requires"]);
    refuses("pass keep state (max 5, max 6)", &["rules:1:25:", "multiple definitions"]);
    refuses("block keep state", &["only for pass rules"]);
}

#[test]
fn other_files_are_read_where_they_are_named() {
    let files = [
        ("more", "block in\ninclude \"rest\""),
        ("rest", "pass out"),
        ("list", "10/8 ; all\n!10.1.0.0/16 # some\n"),
    ];
    assert_eq!(read("include \"more\"", &files), "block drop in all\npass out all flags S/SA keep state\n");
    assert_eq!(read("table <t> persist file \"list\"", &files), "table <t> persist file \"list\"\n");
    assert_eq!(
        read("anchor a\nload anchor a from \"rest\"", &files),
        "anchor \"a\" all\npass out all flags S/SA keep state\n"
    );
    assert!(read("include \"rules\"", &files).contains("in a circle"));
    assert!(read("pass\ninclude \"bad\"", &[("bad", "\n blok")]).starts_with("bad:2:2: syntax error"));
    assert!(
        read("table <t> file \"bad\"", &[("bad", "\n10/8 10.0.0.300")])
            .starts_with("bad:2:6: could not parse")
    );
    let repeated = read("table <t> file \"bad\"", &[("bad", " !em0\t! em0 em")]);
    assert!(
        repeated.starts_with("bad:1:13: "),
        "the column of the word, not of one that begins so: {repeated}"
    );
}

#[test]
fn what_is_not_supported_is_refused_by_its_word() {
    for (rule, column, word) in [
        ("pass in on em0 route-to (em1 192.0.2.9)", 16, "route-to"),
        ("pass in reply-to (em1 192.0.2.9)", 9, "reply-to"),
        ("pass in inet6 af-to inet from 192.0.2.1", 15, "af-to"),
        ("pass in proto tcp divert-to 127.0.0.1 port 700", 19, "divert-to"),
        ("pass in dnpipe 1", 9, "dnpipe"),
        ("pass in dnqueue (1, 2)", 9, "dnqueue"),
        ("pass proto tcp synproxy state", 16, "synproxy"),
        ("pass proto tcp modulate state", 16, "modulate"),
        ("altq on em0 cbq queue { a b }", 1, "altq"),
        ("queue a bandwidth 10Mb", 1, "queue"),
        ("pass out queue a", 10, "queue"),
        ("ether block in", 1, "ether"),
        ("anchor a {\n  pass in fastroute\n}", 11, "fastroute"),
    ] {
        let line = 1 + rule.matches('\n').count().min(1);
        refuses(rule, &[&format!("rules:{line}:{column}: '{word}' is not supported: ")]);
    }
}

#[test]
fn contradictions_are_refused() {
    for (rule, words) in [
        ("pass proto udp flags S/SA", "flags only apply to tcp"),
        ("pass proto tcp flags S/A", "flags always false"),
        ("pass proto icmp icmp-type echoreq", "must indicate address family"),
        ("pass inet proto icmp6", "doesn't match address family"),
        ("pass inet proto tcp icmp-type echoreq", "icmp-type mismatch"),
        ("pass from 10.0.0.1 to ::1", "no valid combination"),
        ("pass from { any, 10.0.0.1 }", "'any' stands in a list"),
        ("pass to urpf-failed", "not permitted in a destination"),
        ("block return-rst", "only be applied to TCP"),
        ("pass proto tcp fragment flags S/SA", "only on IP header fields"),
        ("pass from www.example.org", "could not parse host specification"),
        ("pass from 10.0.0.0/33", "netmask is invalid"),
        ("table <t> { ::ffff:192.0.2.1 }", "is an IPv4 address as IPv6 maps it"),
        (
            "pass label \"a\" label \"b\" label \"c\" label \"d\" label \"e\" label \"f\"",
            "can only be used 5 times",
        ),
        ("rdr on em0 proto tcp from any to any port > 5 -> 10.0.0.1", "invalid port operator"),
        ("nat on em0 from any to any -> em0", "multiple address families"),
        ("nat on em0 inet from any to any", "'->'"),
        ("table <t> { 10.0.0.1 - 10.0.0.9 }", "ranges are not permitted"),
        ("anchor", "the name of an anchor"),
        ("anchor \"a/b\" {\npass\n}", "inline anchors"),
        ("pass {", "syntax error"),
        ("x = \"1", "does not end"),
    ] {
        refuses(rule, &["rules:1:", words]);
    }
}

#[test]
fn lists_cannot_fill_the_memory() {
    let ports: Vec<String> = (1..=400).map(|port| port.to_string()).collect();
    let ports = ports.join(" ");
    let text = format!("pass proto tcp from port {{ {ports} }} to port {{ {ports} }}");
    refuses(Box::leak(text.into_boxed_str()), &["rules:1:1:", "more than 100000 rules", "table"]);
    let short = ports.split_once(" 201 ").unwrap().0;
    let list = format!("pass proto tcp from port {{ {short} }} to port {{ {short} }}\n");
    refuses(
        list.repeat(3).leak(),
        &["rules:3:1:", "the lists of rules up to here", "more than 100000 rules"],
    );
    refuses(format!("anchor {{\n{}}}\n", list.repeat(3)).leak(), &["rules:4:1:", "more than 100000 rules"]);
    let body = "pass\n".repeat(300);
    let inside = format!("anchor out on {{ {} }} {{\n{body}}}\n", interface_names(400));
    refuses(inside.leak(), &["rules:1:1:", "more than 100000 rules"]);
    refuses(Box::leak(format!("pass from {}", "{".repeat(5_000)).into_boxed_str()), &["nested too deep"]);
}

fn interface_names(count: usize) -> String {
    (0..count).map(|number| format!("em{number} ")).collect()
}

/// Each of them has the rules of the file for itself.
#[test]
fn anchors_cannot_fill_the_memory() {
    let [once, often] = [1, 400].map(|count| {
        let rules = format!("{}load anchor \"a\" from \"more\"\n", "anchor \"a\"\n".repeat(count)).leak();
        let files = HashMap::from([("rules", &*rules), ("more", "pass\n".repeat(300).leak())]);
        lower(&load("rules", &Files(files), &machine()).unwrap(), &Interfaces::default())
    });
    assert_eq!(once.unwrap().parts.rules.len(), 301);
    let error = often.unwrap_err().to_string();
    let expected = "the anchors up to here stand for more than 100000 rules";
    assert!(error.starts_with("more:") && error.contains(expected), "{error}");
}

#[test]
fn a_tag_keeps_its_number_when_others_come_before_it() {
    let number = |rules: &'static str| {
        let config = load("rules", &Files(HashMap::from([("rules", rules)])), &machine()).unwrap();
        let tags = lower(&config, &Interfaces::default()).unwrap().tags;
        tags.iter().find_map(|(number, name)| (name == "GUEST").then_some(*number)).unwrap()
    };
    let alone = number("pass in tag GUEST\n");
    assert_eq!(number("pass in tag STAFF\npass in tag GUEST\n"), alone);
}

#[test]
fn macros_cannot_fill_the_memory() {
    let doubled = format!("a = \"{}\"\n{}", "10.0.0.1 ".repeat(8), "a = $a $a\n".repeat(60));
    refuses(doubled.leak(), &["the macros up to here stand for more than", "write shorter ones"]);
}

#[test]
fn files_that_include_each_other_many_times_are_refused() {
    let names: Vec<&'static str> = (0..14).map(|level| &*format!("level{level}").leak()).collect();
    let includes = |name: &str| &*format!("include \"{name}\"\n").repeat(100).leak();
    let mut files: Vec<(&str, &str)> = names.windows(2).map(|pair| (pair[0], includes(pair[1]))).collect();
    files.push((names[13], "pass\n"));
    let error = read("include \"level0\"", &files);
    assert!(error.contains("longer than 64 MiB"), "{error}");
}

#[test]
fn messages_quote_long_words_in_part_and_control_characters_by_name() {
    let long = read(format!("blok{}", "k".repeat(7_000)).leak(), &[]);
    assert!(long.len() < 300 && long.contains("blokkkk") && long.contains('…'), "{long}");
    let control = read("pass \u{1b}[2J", &[]);
    assert!(!control.contains('\u{1b}') && control.contains("\\u{1b}"), "{control:?}");
}
