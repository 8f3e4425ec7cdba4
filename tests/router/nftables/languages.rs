//! The rules in the languages of nft, pf.conf and ipfw.

use super::rules::{Addresses, Protocol, Rule, Rules};

fn ranges(ranges: &[[u16; 2]], between: &str, separator: &str) -> String {
    let one = |[first, last]: &[u16; 2]| match first == last {
        true => first.to_string(),
        false => format!("{first}{between}{last}"),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(separator)
}

fn joined(parts: Vec<String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The name of the rule's protocol; empty for all.
fn protocol(rule: &Rule, icmp6: &'static str) -> &'static str {
    match (rule.protocol, rule.is_inet6) {
        (None, _) => "",
        (Some(Protocol::Tcp), _) => "tcp",
        (Some(Protocol::Udp), _) => "udp",
        (Some(Protocol::Icmp), false) => "icmp",
        (Some(Protocol::Icmp), true) => icmp6,
    }
}

/// The text if it is needed.
fn words(is_needed: bool, text: &str) -> String {
    if is_needed { text.to_owned() } else { String::new() }
}

/// Whether only a segment that begins a connection matches.
fn is_for_beginnings(rule: &Rule, keep_states: bool) -> bool {
    rule.accepts && keep_states && rule.protocol == Some(Protocol::Tcp)
}

/// A file for nft that accepts packets of protocol 253, too, which end each round.
pub fn nft(rules: &Rules) -> String {
    let lines: Vec<String> = rules.rules.iter().map(|rule| nft_rule(rule, rules.keep_states)).collect();
    let [inet, inet6] = [0, 1].map(|family| rules.sets[family].join(", "));
    let others = if rules.accepts_others { "accept" } else { "drop" };
    let states = if rules.keep_states { "ct state established,related accept" } else { "" };
    format!(
        "flush ruleset
table inet own {{
    set four {{ type ipv4_addr; flags interval; auto-merge; elements = {{ {inet} }}; }}
    set six {{ type ipv6_addr; flags interval; auto-merge; elements = {{ {inet6} }}; }}
    chain forward {{
        type filter hook forward priority 0; policy {others};
        ip protocol 253 accept
        {states}
        {}
    }}
}}
",
        lines.join("\n        ")
    )
}

fn nft_rule(rule: &Rule, keep_states: bool) -> String {
    let protocol = protocol(rule, "icmpv6");
    let ends = [0, 1].map(|end| {
        let [addresses, ports] = [["saddr", "daddr"][end], ["sport", "dport"][end]];
        let set = ranges(&rule.ports[end], "-", ", ");
        joined(vec![
            rule.addresses[end]
                .as_ref()
                .map_or(String::new(), |of| nft_addresses(of, addresses, rule.is_inet6)),
            words(!set.is_empty(), &format!("{protocol} {ports} {{ {set} }}")),
        ])
    });
    joined(vec![
        words(!protocol.is_empty(), &format!("meta l4proto {protocol}")),
        ends.join(" "),
        rule.icmp_type.map_or(String::new(), |kind| format!("{protocol} type {kind}")),
        words(is_for_beginnings(rule, keep_states), "tcp flags & (syn | ack) == syn"),
        if rule.accepts { "accept" } else { "drop" }.into(),
    ])
}

fn nft_addresses(addresses: &Addresses, side: &str, is_inet6: bool) -> String {
    let (family, set) = if is_inet6 { ("ip6", "@six") } else { ("ip", "@four") };
    match addresses {
        Addresses::Network(network) => format!("{family} {side} {network}"),
        Addresses::Set => format!("{family} {side} {set}"),
    }
}

/// Every rule ends the search.
pub fn pf_first_match(rules: &Rules) -> String {
    let lines = rules.rules.iter().map(|rule| pf_rule(rule, "quick", rules.keep_states));
    pf(rules, lines.collect())
}

/// The last rule that matches decides, so the order is the opposite one.
pub fn pf_last_match(rules: &Rules) -> String {
    let lines = rules.rules.iter().rev().map(|rule| pf_rule(rule, "", rules.keep_states));
    pf(rules, lines.collect())
}

fn pf(rules: &Rules, lines: Vec<String>) -> String {
    let [inet, inet6] = [0, 1].map(|family| rules.sets[family].join(", "));
    let states = pf_states(rules.keep_states);
    let others = if rules.accepts_others { format!("pass in {states}") } else { "block in".into() };
    format!(
        "table <four> {{ {inet} }}\ntable <six> {{ {inet6} }}\npass out {states}\n{others}\n{}\n",
        lines.join("\n")
    )
}

fn pf_states(keep_states: bool) -> &'static str {
    if keep_states { "keep state" } else { "no state" }
}

fn pf_rule(rule: &Rule, quick: &str, keep_states: bool) -> String {
    let (family, kind) = if rule.is_inet6 { ("inet6", "icmp6-type") } else { ("inet", "icmp-type") };
    let protocol = protocol(rule, "icmp6");
    let ends = [0, 1].map(|end| {
        let set = ranges(&rule.ports[end], ":", ", ");
        let ports = words(!set.is_empty(), &format!("port {{ {set} }}"));
        joined(vec![pf_addresses(rule.addresses[end].as_ref(), rule.is_inet6).into(), ports])
    });
    joined(vec![
        if rule.accepts { "pass in" } else { "block in" }.into(),
        quick.into(),
        words(rule.has_family(), family),
        words(!protocol.is_empty(), &format!("proto {protocol}")),
        format!("from {} to {}", ends[0], ends[1]),
        rule.icmp_type.map_or(String::new(), |of| format!("{kind} {of}")),
        words(rule.accepts, pf_states(keep_states)),
    ])
}

fn pf_addresses(addresses: Option<&Addresses>, is_inet6: bool) -> &str {
    match addresses {
        None => "any",
        Some(Addresses::Network(network)) => network,
        Some(Addresses::Set) if is_inet6 => "<six>",
        Some(Addresses::Set) => "<four>",
    }
}

/// What comes in is judged, and what has come in may leave.
pub fn ipfw(rules: &Rules) -> String {
    let names = ["four", "six"].into_iter().zip(&rules.sets);
    let entries = names.flat_map(|(name, set)| set.iter().map(move |of| format!("table {name} add {of}\n")));
    let lines = (100..)
        .zip(&rules.rules)
        .map(|(number, rule)| format!("add {number} {}\n", ipfw_rule(rule, rules.keep_states)));
    let states = if rules.keep_states { "add 2 check-state\n" } else { "" };
    let others = if rules.accepts_others { "allow" } else { "deny" };
    format!(
        "{}add 1 allow ip from any to any out\n{states}{}add 65000 {others} ip from any to any\n",
        entries.collect::<String>(),
        lines.collect::<String>()
    )
}

fn ipfw_rule(rule: &Rule, keep_states: bool) -> String {
    let protocol = if rule.protocol.is_some() { protocol(rule, "ipv6-icmp") } else { "ip" };
    let kind = if rule.is_inet6 { "icmp6types" } else { "icmptypes" };
    let ends = [0, 1].map(|end| {
        let addresses = ipfw_addresses(rule.addresses[end].as_ref(), rule.is_inet6);
        joined(vec![addresses.into(), ranges(&rule.ports[end], "-", ",")])
    });
    joined(vec![
        if rule.accepts { "allow" } else { "deny" }.into(),
        format!("{protocol} from {} to {}", ends[0], ends[1]),
        rule.icmp_type.map_or(String::new(), |of| format!("{kind} {of}")),
        words(is_for_beginnings(rule, keep_states), "setup"),
        words(rule.accepts && keep_states, "keep-state"),
    ])
}

fn ipfw_addresses(addresses: Option<&Addresses>, is_inet6: bool) -> &str {
    match addresses {
        None => "any",
        Some(Addresses::Network(network)) => network,
        Some(Addresses::Set) if is_inet6 => "table(six)",
        Some(Addresses::Set) => "table(four)",
    }
}
