//! `add`: a rule with its number, set and action.

use super::ast::{IpfwAction, IpfwBody, IpfwReject, IpfwRule};
use super::body::{BodyParts, body, flow, without_body};
use super::codes;
use super::options::tag;
use super::rule_size::{MOST_TESTS, is_bounded};
use super::words::{NAMEABLE, Parsed, Words};

/// The last number, which belongs to the default rule.
pub(super) const DEFAULT_RULE: u16 = 65535;

/// Reads what follows `add`. The number is zero if the command has none.
pub(super) fn rule(words: &mut Words<'_>) -> Parsed<IpfwRule> {
    let number = match words.peek().and_then(|word| word.parse::<u32>().ok()) {
        Some(_) => words.number("a rule's number", u32::from(DEFAULT_RULE) - 1)? as u16,
        None => 0,
    };
    let set = if words.take("set") { words.number("a set", 31)? as u8 } else { 0 };
    let probability = if words.take("prob") { Some(probability(words)?) } else { None };
    let action = action(words)?;
    let (log, tag) = modifiers(words)?;
    let BodyParts { body, keep, comment } = match action {
        IpfwAction::CheckState(_) => without_body(words)?,
        _ => body(words)?,
    };
    check_ports(words, &body)?;
    let rule = IpfwRule { number, set, probability, action, log, tag, body, keep, comment };
    if is_bounded(&rule) { Ok(rule) } else { Err(words.error(too_many_tests())) }
}

fn too_many_tests() -> String {
    format!(
        "the rule stands for more than {MOST_TESTS} tests; write several rules, or put addresses into a table"
    )
}

fn probability(words: &mut Words<'_>) -> Parsed<f64> {
    let word = words.need("a probability")?;
    let share = word.parse().ok().filter(|share| (0.0..=1.0).contains(share) && *share > 0.0);
    share
        .ok_or_else(|| words.error(format!("`{word}` is no probability; write a number above 0 and up to 1")))
}

fn action(words: &mut Words<'_>) -> Parsed<IpfwAction> {
    // A rule of a comment alone counts.
    if words.peek().is_some_and(|word| word.starts_with("//")) {
        return Ok(IpfwAction::Count);
    }
    Ok(match words.need("an action")? {
        "allow" | "accept" | "pass" | "permit" => IpfwAction::Allow,
        "deny" | "drop" => IpfwAction::Deny,
        "count" => IpfwAction::Count,
        "reject" => IpfwAction::Reject(IpfwReject::Unreach(1)),
        "reset" => IpfwAction::Reject(IpfwReject::Reset),
        "reset6" => IpfwAction::Reject(IpfwReject::Reset6),
        "unreach" => IpfwAction::Reject(unreach(words)?),
        "unreach6" => IpfwAction::Reject(unreach6(words)?),
        "skipto" => IpfwAction::SkipTo(words.number_of("a rule's number", NAMEABLE)? as u16),
        "check-state" => IpfwAction::CheckState(flow(words)?),
        "nat" => IpfwAction::Nat(words.number("the number of a nat instance", 65534)? as u16),
        other => return Err(words.error(refusal(other))),
    })
}

/// Why an action is refused.
fn refusal(action: &str) -> String {
    const SUPPORTED: &str =
        "allow, deny, reject, reset, reset6, unreach, unreach6, count, skipto, check-state and nat are";
    const INSTEAD: [(&str, &str); 22] = [
        ("pipe", "shaping (dummynet)"),
        ("queue", "shaping (dummynet)"),
        ("divert", "handing packets to programs"),
        ("tee", "handing packets to programs"),
        ("netgraph", "netgraph"),
        ("ngtee", "netgraph"),
        ("fwd", "choosing a next hop"),
        ("forward", "choosing a next hop"),
        ("setfib", "choosing a table of routes"),
        ("setdscp", "changing headers"),
        ("tcp-setmss", "changing headers"),
        ("setmark", "marks"),
        ("reass", "reassembly"),
        ("call", "subroutines"),
        ("return", "subroutines"),
        ("abort", "aborting SCTP"),
        ("abort6", "aborting SCTP"),
        ("eaction", "external modules"),
        ("nat64lsn", "translation between families"),
        ("nat64stl", "translation between families"),
        ("nat64clat", "translation between families"),
        ("nptv6", "translation between families"),
    ];
    match codes::named(&INSTEAD, action) {
        Some(what) => format!("`{action}` is not supported ({what}); {SUPPORTED}"),
        None => format!("`{action}` is no action; {SUPPORTED}"),
    }
}

fn unreach(words: &mut Words<'_>) -> Parsed<IpfwReject> {
    let word = words.need("a code")?;
    let code = codes::unreach(word).ok_or_else(|| {
        words.error(format!("`{word}` is no code; write a name such as port, or a number up to 254"))
    })?;
    let number = words.peek().filter(|next| word == "needfrag" && next.parse::<u16>().is_ok());
    if let Some(mtu) = number {
        return Err(words.error_here(format!("`{mtu}` is not supported: answers state no MTU; remove it")));
    }
    Ok(IpfwReject::Unreach(code))
}

fn unreach6(words: &mut Words<'_>) -> Parsed<IpfwReject> {
    let word = words.need("a code")?;
    let code = codes::unreach6(word).ok_or_else(|| {
        words.error(format!(
            "`{word}` is no code; write no-route, admin-prohib, address, port or a number up to 254"
        ))
    })?;
    Ok(IpfwReject::Unreach6(code))
}

/// `log [logamount N]` and `tag N`, in any order.
fn modifiers(words: &mut Words<'_>) -> Parsed<(bool, Option<u16>)> {
    let (mut log, mut set_tag) = (false, None);
    loop {
        if words.take("log") {
            log = true;
            if words.take("logamount") {
                words.number("a number of packets", u32::MAX)?;
            }
        } else if words.take("tag") {
            set_tag = Some(tag(words)?);
        } else if words.peek().is_some_and(|word| matches!(word, "altq" | "untag")) {
            words.next();
            return Err(words.error("this modifier is not supported; log and tag are"));
        } else {
            return Ok((log, set_tag));
        }
    }
}

/// Only some protocols have ports, so a rule with ports names one of them, or all.
fn check_ports(words: &Words<'_>, body: &IpfwBody) -> Parsed<()> {
    use super::ast::IpfwProtocol::Number;
    use crate::packet::protocol::has_ports;
    let portless = |number| !has_ports(number);
    let impossible =
        body.protocols.iter().all(|term| matches!(term.value, Number(number) if portless(number)));
    let has_test = !body.source_ports.is_empty() || !body.destination_ports.is_empty();
    if has_test && impossible && !body.protocols.is_empty() {
        return Err(words.error("this protocol has no ports; tcp, udp, sctp and udplite have"));
    }
    Ok(())
}
