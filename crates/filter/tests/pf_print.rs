//! What is printed reads as the same rules: parse(print(rules)) == rules, for random rules.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

use std::io;

use fullview_filter::pf::config::{PfConfig, PfSetting};
use fullview_filter::pf::error::Position;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::rule::{PfAction, PfRule};
use proptest::prelude::*;
use proptest::sample::select;

/// A rule set without other files.
struct Text<'a>(&'a str);

impl RulesetFiles for Text<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        if path == "rules" { Ok(self.0.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

fn read(text: &str) -> PfConfig {
    let config = load("rules", &Text(text), &HostFacts::default());
    without_places(config.unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Lists are printed as several rules, which stand in other lines.
fn without_places(mut config: PfConfig) -> PfConfig {
    let nowhere = Position { file: "".into(), line: 0, column: 0 };
    let rules = &mut config.rules;
    for list in [&mut rules.scrub, &mut rules.nat, &mut rules.rdr, &mut rules.binat, &mut rules.filter] {
        list.iter_mut().for_each(|rule| move_rule(rule, &nowhere));
    }
    for setting in &mut config.settings {
        match setting {
            PfSetting::Table(table) => table.position = nowhere.clone(),
            PfSetting::Option { position, .. } => *position = nowhere.clone(),
            PfSetting::Macro { .. } => {}
        }
    }
    config
}

fn move_rule(rule: &mut PfRule, place: &Position) {
    rule.position = place.clone();
    if let PfAction::Anchor(call) = &mut rule.action {
        call.body.iter_mut().for_each(|rule| move_rule(rule, place));
    }
}

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<String> {
    select(words).prop_map(str::to_owned).boxed()
}

/// One of the words or nothing.
fn maybe(words: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), one_of(words)].boxed()
}

/// Up to three of a list, in braces if the list is longer than one.
fn list(item: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let several =
        prop::collection::vec(item.clone(), 1..4).prop_map(|items| format!("{{ {} }}", items.join(", ")));
    prop_oneof![item, several].boxed()
}

fn joined(parts: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let words =
        |parts: Vec<String>| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    parts.prop_map(words).boxed()
}

fn host(family: &str) -> BoxedStrategy<String> {
    let common = one_of(&["<friends>", "! <friends>", "(em0)", "(em0:network)", "(em1:0)/24", "no-route"]);
    let inet = prop_oneof![
        (any::<[u8; 4]>(), 1..=32_u8)
            .prop_map(|(octets, length)| format!("{}/{length}", octets.map(|o| o.to_string()).join("."))),
        one_of(&["10/8", "! 192.0.2.7", "192.0.2.1 - 192.0.2.9", "172.16.0.0/12"]),
        common.clone(),
    ];
    let inet6 = prop_oneof![
        (any::<[u16; 8]>(), 1..=128_u8)
            .prop_map(|(groups, length)| { format!("{}/{length}", std::net::Ipv6Addr::from(groups)) }),
        one_of(&["2001:db8::/32", "! ::1", "2001:db8::1 - 2001:db8::9"]),
        common.clone(),
    ];
    match family {
        "inet" => list(inet.boxed()),
        "inet6" => list(inet6.boxed()),
        _ => common,
    }
}

fn ports() -> BoxedStrategy<String> {
    let port = (1..=65_000_u16, 1..=500_u16).prop_flat_map(|(low, more)| {
        let high = low + more;
        select(vec![
            format!("{low}"),
            format!("= {low}"),
            format!("!= {low}"),
            format!("< {low}"),
            format!("<= {low}"),
            format!("> {low}"),
            format!(">= {low}"),
            format!("{low}:{high}"),
            format!("{low} >< {high}"),
            format!("{low} <> {high}"),
            "ssh".to_owned(),
            "http".to_owned(),
        ])
    });
    let some = list(port.boxed()).prop_map(|ports| format!("port {ports}"));
    prop_oneof![Just(String::new()), some].boxed()
}

fn addresses(family: &'static str, with_ports: bool) -> BoxedStrategy<String> {
    let ports = || if with_ports { ports() } else { Just(String::new()).boxed() };
    let any = || Just("any".to_owned()).boxed();
    let end = |word: &'static str, urpf: bool| {
        let special = if urpf { Just("urpf-failed".to_owned()).boxed() } else { any() };
        let host = prop_oneof![4 => host(family), 2 => any(), 1 => special];
        (host, ports()).prop_map(move |(host, ports)| format!("{word} {host} {ports}")).boxed()
    };
    let both = (end("from", true), end("to", false)).prop_map(|(from, to)| format!("{from} {to}"));
    prop_oneof![1 => Just("all".to_owned()), 4 => both].boxed()
}

fn head() -> Vec<BoxedStrategy<String>> {
    vec![
        maybe(&["in", "out"]),
        maybe(&["log", "log (all)", "log (all, user, to pflog1)"]),
        maybe(&["quick"]),
        maybe(&["on em0", "on ! em0", "on { em0, em1 }", "on egress", "on any"]),
    ]
}

/// Family, protocol, addresses and what depends on the protocol.
fn selection(family: &'static str) -> BoxedStrategy<String> {
    let tcp = joined(vec![
        one_of(&["proto tcp", "proto { tcp, udp }"]),
        addresses(family, true),
        maybe(&["flags S/SA", "flags any", "flags /SF", "flags FSR/FSRPAUEW"]),
    ]);
    let other = joined(vec![
        maybe(&["proto udp", "proto 200", "proto { esp, ah, gre }", "proto ospf"]),
        addresses(family, false),
        maybe(&["user 80", "user { > 1000, unknown }", "group != 5"]),
    ]);
    let icmp = match family {
        "inet" => joined(vec![
            Just("proto icmp".to_owned()).boxed(),
            addresses(family, false),
            maybe(&["icmp-type echoreq", "icmp-type { unreach code needfrag, 77, timex code 9 }"]),
        ]),
        "inet6" => joined(vec![
            Just("proto icmp6".to_owned()).boxed(),
            addresses(family, false),
            maybe(&["icmp6-type neighbrsol", "icmp6-type { unreach code admin-unr, toobig }"]),
        ]),
        _ => other.clone(),
    };
    let body = prop_oneof![2 => tcp, 2 => other, 1 => icmp];
    body.prop_map(move |body| format!("{family} {body}")).boxed()
}

fn any_selection() -> BoxedStrategy<String> {
    prop_oneof![selection("inet"), selection("inet6"), selection("")].boxed()
}

fn options() -> Vec<BoxedStrategy<String>> {
    vec![
        maybe(&["tos 0x10", "tos af21", "tos cs0"]),
        maybe(&["max-pkt-rate 100/10"]),
        maybe(&["max-pkt-size 128"]),
        maybe(&["prio 3"]),
        maybe(&["set prio 2", "set (prio (2, 5), tos lowdelay)"]),
        maybe(&["probability 20%", "probability 0.3", "probability 33.333%"]),
        maybe(&["scrub (no-df, random-id)", "scrub (min-ttl 5 max-mss 1440 reassemble tcp)"]),
        maybe(&["label \"web\"", "label \"$if:$nr $proto\" label \"two words\""]),
        maybe(&["ridentifier 7"]),
        maybe(&["tag GOOD"]),
        maybe(&["tagged BAD", "! tagged BAD"]),
        maybe(&["rtable 1"]),
        maybe(&["received-on em1", "! received-on em1"]),
    ]
}

fn states() -> BoxedStrategy<String> {
    maybe(&[
        "no state",
        "keep state",
        "keep state (max 100)",
        "keep state (max 5, no-sync, if-bound, sloppy)",
        "keep state (source-track rule, max-src-states 3, max-src-nodes 10)",
        "keep state (max-src-conn 5, max-src-conn-rate 10/60, overload <friends> flush global)",
        "keep state (tcp.first 10, udp.multiple 30, adaptive.start 5, adaptive.end 9, pflow)",
    ])
}

fn rule(words: &'static [&'static str], more: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    let mut parts = vec![one_of(words)];
    parts.extend(head());
    parts.push(any_selection());
    parts.extend(options());
    parts.extend(more);
    joined(parts)
}

fn filter() -> BoxedStrategy<String> {
    let reply =
        &["block", "block drop", "block return", "block return-icmp", "block return-icmp (host-unr, 3)"];
    prop_oneof![
        rule(&["pass"], vec![states(), maybe(&["allow-opts"]), maybe(&["once"])]),
        rule(reply, vec![maybe(&["once"])]),
        rule(&["match"], vec![]),
        translated(),
    ]
    .boxed()
}

fn pool() -> BoxedStrategy<String> {
    joined(vec![
        one_of(&["192.0.2.1", "{ 192.0.2.1, 192.0.2.2 }", "<friends>", "(em0)", "(em0:0)", "192.0.2.0/24"]),
        maybe(&["round-robin", "round-robin sticky-address"]),
    ])
}

fn translated() -> BoxedStrategy<String> {
    let nat = (pool(), maybe(&["static-port"])).prop_map(|(pool, port)| format!("nat-to {pool} {port}"));
    let rdr =
        (one_of(&["", "port 80", "port 1000:2000"])).prop_map(|port| format!("rdr-to 192.0.2.9 {port}"));
    let binat = Just("binat-to 192.0.2.3".to_owned());
    let pair = "match inet from 10.0.0.7 to any";
    prop_oneof![
        nat.prop_map(|to| format!("pass out on em0 inet from 10.0.0.0/8 to any {to}")),
        rdr.prop_map(|to| format!("match in on em0 inet proto tcp from any to 192.0.2.1 port 80 {to}")),
        binat.prop_map(move |to| format!("{pair} {to}")),
    ]
    .boxed()
}

fn anchor() -> BoxedStrategy<String> {
    let name = maybe(&["\"guests\"", "web"]);
    let body = prop::collection::vec(filter(), 1..4);
    let leaf = (name, maybe(&["in", "in quick on em0"]), body)
        .prop_map(|(name, head, body)| format!("anchor {name} {head} {{\n{}\n}}", body.join("\n")));
    let outer = (leaf.clone(), filter())
        .prop_map(|(inner, rule)| format!("anchor \"outer\" {{\n{rule}\n{inner}\n}}"));
    prop_oneof![leaf, outer, one_of(&["anchor \"ftp/*\" out", "anchor blocked all"])].boxed()
}

fn translations() -> BoxedStrategy<String> {
    let log = || maybe(&["pass", "log", "pass log (all)"]);
    prop_oneof![
        (log(), pool()).prop_map(|(log, pool)| format!("nat {log} on em0 inet from 10.0.0.0/8 to any -> {pool}")),
        (log(), one_of(&["port 1000:*", "port 80", ""])).prop_map(|(log, port)| {
            format!("rdr {log} on em0 inet proto tcp from any to any port 80:90 -> 10.0.0.1 {port}")
        }),
        log().prop_map(|log| format!("binat {log} on em0 inet from 10.0.0.2 to any -> 192.0.2.2")),
        one_of(&["no nat on em0 inet all", "nat-anchor \"ftp/*\"", "rdr-anchor redirections on em1"]),
        one_of(&["nat on em0 from any to any tagged A -> 203.0.113.0/24 source-hash 0x00000000000000000000000000000007"]),
    ]
    .boxed()
}

fn settings() -> BoxedStrategy<String> {
    one_of(&[
        "set skip on { lo0, lo1 }",
        "set skip on none",
        "set timeout { tcp.first 30, interval 5 }",
        "set limit states 5000",
        "set optimization aggressive",
        "set loginterface em0",
        "set debug urgent",
        "set hostid 7",
        "set reassemble yes no-df",
        "set syncookies adaptive (start 29%, end 15%)",
        "set fingerprints \"/etc/pf.os\"",
        "set fail-policy return",
        "table <friends> const persist counters { 10/8, !10.1/16 } { 2001:db8::1 }",
        "table <empty> { }",
        "servers = \"{ 10.0.0.1, 10.0.0.2 }\"",
    ])
}

fn scrub() -> BoxedStrategy<String> {
    one_of(&[
        "scrub in on em0 all no-df random-id min-ttl 5 max-mss 1440",
        "scrub proto tcp reassemble tcp",
        "no scrub on em1 inet from 10/8",
        "scrub in inet fragment no reassemble",
    ])
}

fn several(item: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop::collection::vec(item, 0..4).prop_map(|lines| lines.join("\n")).boxed()
}

fn ruleset() -> BoxedStrategy<String> {
    let last = several(prop_oneof![3 => filter(), 1 => anchor()].boxed());
    let parts = vec![several(settings()), several(scrub()), several(translations()), last];
    parts.prop_map(|parts| parts.join("\n")).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_rules_read_as_the_same_rules(text in ruleset()) {
        let rules = read(&text);
        let printed = rules.to_string();
        prop_assert_eq!(read(&printed), rules, "{}", printed);
    }

    /// Nothing that can be typed panics the parser.
    #[test]
    fn any_text_is_read_or_refused_with_its_place(text in "[a-z0-9 {}()<>!=,./:$\"\\\\#\n-]{0,80}") {
        if let Err(error) = load("rules", &Text(&text), &HostFacts::default()) {
            prop_assert!(error.to_string().starts_with("rules:"));
        }
    }
}
