//! What rule sets become beyond the verdicts of filter rules: states, translations, options and refusals.

use fullview_filter::interfaces::FilterInterface;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::pf::lower::{lower, lower_for};
use fullview_filter::rule::Side;
use fullview_filter::verdict::{DropReason, Rewrite, Verdict};

use crate::{address, decide, interfaces, lowered, read};

fn packet(direction: Direction, source: (&str, u16), destination: (&str, u16)) -> Packet {
    let pass = Pass { direction, interface: 1, received_on: 1 };
    Packet::udp(pass, (address(source.0), source.1), (address(destination.0), destination.1))
}

fn rewritten(rules: &str, packet: &Packet) -> Option<Rewrite> {
    match decide(&lowered(rules).unwrap(), packet).0.verdict {
        Verdict::Translate(rewrite) => Some(rewrite),
        _ => None,
    }
}

#[test]
fn sources_are_translated_on_the_way_out() {
    let rules = "no nat on em0 from 10.0.0.9 to any\nnat on em0 inet from 10.0.0.0/8 to any -> (em0:0) port 2000:2009";
    let out = |source| packet(Direction::Out, (source, 5000), ("198.51.100.1", 53));
    let rewrite = rewritten(rules, &out("10.0.0.2")).unwrap();
    assert_eq!((rewrite.side, rewrite.address), (Side::Source, address("192.0.2.1")));
    assert!((2000..=2009).contains(&rewrite.port), "{rewrite:?}");
    assert_eq!(rewritten(rules, &out("10.0.0.9")), None);
    assert_eq!(rewritten(rules, &packet(Direction::In, ("10.0.0.2", 5000), ("198.51.100.1", 53))), None);
    let kept =
        rewritten("nat on em0 inet from any to any -> 192.0.2.7 static-port", &out("10.0.0.2")).unwrap();
    assert_eq!(kept.port, 5000);
}

#[test]
fn destinations_are_translated_on_the_way_in() {
    let arriving = |port| packet(Direction::In, ("198.51.100.1", 5000), ("192.0.2.1", port));
    let rules = "rdr on em0 inet proto udp from any to (em0) port 80:89 -> 10.0.0.2 port 8000:*\npass";
    let rewrite = rewritten(rules, &arriving(83)).unwrap();
    assert_eq!((rewrite.side, rewrite.address, rewrite.port), (Side::Destination, address("10.0.0.2"), 8003));
    assert_eq!(rewritten(rules, &arriving(90)), None);
    let shorter = "rdr pass on em0 inet proto udp from any to any port 80:89 -> 10.0.0.2 port 8000:8003";
    let ports = [80, 83, 84, 89].map(|port| rewritten(shorter, &arriving(port)).unwrap().port);
    assert_eq!(ports, [8000, 8003, 8000, 8001], "the ports of the rule, over and over");
    let all = "rdr pass on em0 inet proto udp from any to any -> 10.0.0.2 port 8000:8003";
    assert_eq!(rewritten(all, &arriving(6)).unwrap().port, 8002, "all ports, counted from zero");
    let fixed = "rdr pass on em0 inet proto udp from any to any port 80:89 -> 10.0.0.2 port 8080\nblock";
    assert_eq!(rewritten(fixed, &arriving(85)).unwrap().port, 8080);
    let blocked = "rdr on em0 inet proto udp from any to any port 80:89 -> 10.0.0.2 port 8080\nblock";
    assert_eq!(rewritten(blocked, &arriving(85)), None);
}

#[test]
fn a_network_as_pool_stands_for_its_first_address_unless_told_how_to_choose() {
    let out = |port| packet(Direction::Out, ("10.0.0.2", port), ("198.51.100.1", 53));
    let chosen = |pool: &str, port| {
        rewritten(&format!("nat on em0 inet from any to any -> {pool}"), &out(port)).unwrap().address
    };
    assert!((1..50).all(|port| chosen("192.0.2.0/24", port) == address("192.0.2.0")));
    let two = [address("192.0.2.7"), address("192.0.2.9")];
    assert!((1..50).all(|port| two.contains(&chosen("{ 192.0.2.7, 192.0.2.9 }", port))));
}

#[test]
fn a_pool_drops_packets_while_its_interface_has_no_address() {
    let out = packet(Direction::Out, ("10.0.0.2", 5000), ("198.51.100.1", 53));
    let config = read(&[("rules", "nat on em0 inet from any to any -> (em7)")]);
    let decided = |addresses: &[&str]| {
        let mut interfaces = interfaces();
        let addresses = addresses.iter().map(|own| (address(own), 24)).collect();
        let em7 = FilterInterface { name: "em7".to_owned(), number: 7, groups: Vec::new(), addresses };
        interfaces.0.push(em7);
        decide(&lower(&config, &interfaces).unwrap(), &out).0.verdict
    };
    assert_eq!(decided(&[]), Verdict::Drop(DropReason::NoPort));
    assert!(matches!(decided(&["192.0.2.9"]), Verdict::Translate(_)));
}

#[test]
fn self_in_parentheses_is_every_address_of_this_host() {
    let rules = lowered("pass\nblock in quick from any to (self)").unwrap();
    let to = |destination| packet(Direction::In, ("198.51.100.1", 5000), (destination, 22));
    let blocks = |destination| decide(&rules, &to(destination)).0.verdict != Verdict::Pass;
    assert!(blocks("192.0.2.7") && blocks("10.0.0.1") && !blocks("10.0.0.2"));
}

#[test]
fn one_address_stands_for_another_in_both_directions() {
    let rules = "binat on em0 inet from 10.0.0.2 to any -> 192.0.2.7";
    let out = rewritten(rules, &packet(Direction::Out, ("10.0.0.2", 5000), ("198.51.100.1", 53))).unwrap();
    assert_eq!((out.side, out.address, out.port), (Side::Source, address("192.0.2.7"), 5000));
    let back = rewritten(rules, &packet(Direction::In, ("198.51.100.1", 53), ("192.0.2.7", 5000))).unwrap();
    assert_eq!((back.side, back.address, back.port), (Side::Destination, address("10.0.0.2"), 5000));
}

/// `pf_get_translation` in FreeBSD's pf_lb.c.
#[test]
fn what_no_rdr_excepts_is_translated_by_binat() {
    let rules = "no rdr on em0 inet proto udp from any to 192.0.2.7 port 53\n\
                 rdr on em0 inet proto udp from any to 192.0.2.7 -> 10.0.0.9\n\
                 rdr on em0 inet proto udp from any to 192.0.2.8 -> 10.0.0.9\n\
                 binat on em0 inet from 10.0.0.2 to any -> 192.0.2.7\n";
    let arriving = |to, port| packet(Direction::In, ("198.51.100.1", 5000), (to, port));
    let becomes = |to, port| rewritten(rules, &arriving(to, port)).map(|rewrite| rewrite.address);
    assert_eq!(becomes("192.0.2.7", 80), Some(address("10.0.0.9")));
    assert_eq!(becomes("192.0.2.7", 53), Some(address("10.0.0.2")), "by binat");
    let without_binat = rules.replace(
        "no rdr on em0 inet proto udp from any to 192.0.2.7",
        "no rdr on em0 inet proto udp from any to 192.0.2.8",
    );
    assert_eq!(rewritten(&without_binat, &arriving("192.0.2.8", 53)), None);
}

#[test]
fn options_become_timeouts_limits_and_interfaces() {
    let rules = "set skip on { lo0, em }\nset limit states 1000\nset optimization aggressive\nset timeout { udp.first 7, adaptive.end 900 }
        pass keep state (max-src-nodes 5, max-src-conn-rate 3/10, tcp.first 9, if-bound)";
    let lowered = lowered(rules).unwrap();
    let parts = &lowered.parts;
    assert!([0, 1, 2].iter().all(|number| parts.skip.contains(*number)));
    assert_eq!((lowered.limits.states, parts.adaptive), (1000, (600, 900)));
    let with_room = lower_for(&read(&[("rules", rules)]), &interfaces(), Some(50_000)).unwrap();
    assert_eq!((with_room.limits.states, with_room.parts.adaptive), (50_000, (30_000, 900)));
    assert_eq!((parts.timeouts[0].tcp_first, parts.timeouts[0].udp_first), (30_000, 7_000));
    assert_eq!((parts.timeouts[1].tcp_first, parts.timeouts[1].udp_first), (9_000, 7_000));
    let state = parts.rules.last().unwrap().state.clone().unwrap();
    let source = state.source.unwrap();
    assert!(state.if_bound && source.per_rule);
    assert_eq!((source.max_nodes, source.rate), (Some(5), Some((3, 10))));
}

#[test]
fn a_type_of_service_matches_whatever_its_bits_of_congestion_say() {
    let rules = lowered("block\npass tos 0x10").unwrap();
    let of = |tos| Packet { tos, ..packet(Direction::In, ("10.0.0.2", 5000), ("198.51.100.1", 53)) };
    for (tos, passes) in [(0x10, true), (0x11, true), (0x12, true), (0x13, true), (0x14, false), (0, false)] {
        assert_eq!(decide(&rules, &of(tos)).0.verdict == Verdict::Pass, passes, "{tos:#x}");
    }
}

#[test]
fn anchors_find_the_rules_that_are_loaded_for_them() {
    let main = "block\nanchor \"web/*\" in\nanchor \"mail\"\nload anchor \"web/one\" from \"one\"\nload anchor mail from \"mail\"";
    let files = [
        ("rules", main),
        ("one", "pass proto udp to port 80"),
        ("mail", "anchor \"in\"\npass proto udp to port 25"),
    ];
    let lowered = lower(&read(&files), &interfaces()).unwrap();
    let verdict = |direction, port| {
        decide(&lowered, &packet(direction, ("10.0.0.2", 5000), ("198.51.100.1", port))).0.verdict
            == Verdict::Pass
    };
    assert!(verdict(Direction::In, 80) && verdict(Direction::Out, 25));
    assert!(!verdict(Direction::Out, 80) && !verdict(Direction::In, 53));
}

#[test]
fn the_anchors_below_a_name_are_tried_in_alphabetical_order() {
    for (passing, blocking, passes) in [("web/z", "web/a", true), ("web/a", "web/z", false)] {
        let load = |name: &str, file: &str| format!("load anchor \"{name}\" from \"{file}\"\n");
        let [one, other] = [load(passing, "passing"), load(blocking, "blocking")];
        for main in [format!("anchor \"web/*\"\n{one}{other}"), format!("anchor \"web/*\"\n{other}{one}")] {
            let files = [("rules", main.as_str()), ("passing", "pass"), ("blocking", "block")];
            let lowered = lower(&read(&files), &interfaces()).unwrap();
            let arriving = packet(Direction::In, ("10.0.0.2", 5000), ("198.51.100.1", 53));
            assert_eq!(decide(&lowered, &arriving).0.verdict == Verdict::Pass, passes, "{main}");
        }
    }
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    for (rules, word) in [
        ("pass proto tcp from any os \"OpenBSD\"", "os"),
        ("block from no-route to any", "no-route"),
        ("block from ! urpf-failed to any", "urpf-failed"),
        ("block out user 5", "user"),
        ("pass max-pkt-rate 5/1", "max-pkt-rate"),
        ("pass rtable 1", "rtable"),
        ("pass once", "once"),
        ("match scrub (no-df)", "scrub"),
        ("scrub in", "scrub"),
        ("pass out inet nat-to 192.0.2.7", "nat-to"),
        ("pass keep state (max-src-conn 5, overload <bad>)", "overload"),
        ("pass keep state (max-src-conn 5, overload <bad> flush)", "overload"),
        ("pass keep state (adaptive.start 5, adaptive.end 10)", "adaptive"),
        ("anchor \"a\" tagged A {\nmatch tag B\n}", "tagged"),
        ("anchor \"a\" tagged A {\nanchor {\nmatch tag B\n}\nblock\n}", "tagged"),
        ("anchor \"a\" probability 50% {\npass\n}", "probability"),
        ("nat-anchor \"a\"", "nat-anchor"),
        ("no binat on em0 inet from 10.0.0.2 to any", "no binat"),
        ("nat on em0 inet from any to any -> <pool>", "<pool>"),
        ("nat on em0 inet from any to any -> 192.0.2.7 map-e-portset 6/8/5", "map-e-portset"),
        ("nat on em0 inet from any to any -> 192.0.2.0/28 round-robin sticky-address", "sticky-address"),
        ("rdr on em0 inet from any to any -> { 10.0.0.2, 10.0.0.3 } sticky-address", "source-hash"),
        ("set limit states 9\n set reassemble yes\npass", ":2:2: 'set reassemble yes'"),
        ("set syncookies always\npass", "syncookies"),
    ] {
        let error = lowered(rules).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("is not supported"), "{rules}: {error}");
        assert!(error.starts_with("rules:"), "{rules}: {error}");
    }
}

#[test]
fn limits_without_room_or_with_too_much_are_refused() {
    for name in ["states", "src-nodes", "frags"] {
        let rules = |most: u32| format!("set skip on lo0\nset limit {{ {name} {most}, tables 5 }}\npass");
        for (most, problem) in [(0, "leaves no room"), (u32::MAX, "takes too much memory")] {
            let error = lowered(&rules(most)).unwrap_err().to_string();
            let expected = format!("'set limit {name} {most}' {problem}; 1 to 16777216 are possible");
            assert!(error.starts_with("rules:2:") && error.ends_with(&expected), "{error}");
        }
        assert!(lowered(&rules(1)).is_ok() && lowered(&rules(1 << 24)).is_ok());
    }
}

/// The room for states that is given in place of what the rules say is all that counts.
#[test]
fn a_limit_of_states_that_is_replaced_is_not_refused() {
    let config = read(&[("rules", "set limit states 0\npass")]);
    assert_eq!(lower_for(&config, &interfaces(), Some(7)).unwrap().limits.states, 7);
}

#[test]
fn files_of_anchors_have_no_other_rules_than_filter_rules() {
    let main = "load anchor \"a\" from \"a\"";
    for file in ["nat on em0 inet from any to any -> 192.0.2.7", "scrub in", "load anchor \"b\" from \"b\""] {
        let files = [("rules", main), ("a", file), ("b", "pass")];
        let error = lower(&read(&files), &interfaces()).unwrap_err().to_string();
        assert!(error.starts_with("rules:1:13: 'load anchor' is not supported"), "{error}");
    }
}
