//! What follows a rule's action.

use super::addresses::{are_ports, known_protocol, list, or_block, ports, protocol};
use super::ast::{IpfwBody, IpfwKeep, IpfwPorts, IpfwTerm};
use super::options::option;
use super::words::{NAMEABLE, Parsed, Words};

/// A rule's body with its way to keep states and its comment.
#[derive(Default)]
pub(super) struct BodyParts {
    pub body: IpfwBody,
    pub keep: Option<IpfwKeep>,
    pub comment: Option<String>,
}

/// What follows `check-state`, which has no body. FreeBSD does not look at what follows.
pub(super) fn without_body(words: &mut Words<'_>) -> Parsed<BodyParts> {
    match words.peek() {
        Some(word) if word.starts_with("//") => {
            Ok(BodyParts { comment: Some(comment(words)), ..BodyParts::default() })
        }
        Some(_) => Err(words.error_here("`check-state` looks at all packets; remove what follows")),
        None => Ok(BodyParts::default()),
    }
}

/// A body has a protocol, an option or a comment at least: a line that was cut short would match all packets.
pub(super) fn body(words: &mut Words<'_>) -> Parsed<BodyParts> {
    if words.is_done() {
        return Err(
            words.error_here("the rule ends where what it matches must follow, such as `ip from any to any`")
        );
    }
    let mut parts = BodyParts::default();
    if starts_with_protocol(words) {
        addresses(words, &mut parts.body)?;
    }
    while let Some(word) = words.peek() {
        if word.starts_with("//") {
            parts.comment = Some(comment(words));
        } else if let Some(keep) = keep(words)? {
            if parts.keep.replace(keep).is_some() {
                return Err(
                    words.error("a rule has one of keep-state, record-state and limit; remove this one")
                );
            }
        } else {
            parts.body.options.push(or_block(words, option)?);
        }
    }
    Ok(parts)
}

/// The text after `//`, which need not be followed by a blank.
fn comment(words: &mut Words<'_>) -> String {
    let rest = words.rest();
    let words: Vec<_> = rest.trim_start_matches("//").split_whitespace().collect();
    words.join(" ")
}

fn starts_with_protocol(words: &Words<'_>) -> bool {
    let mut ahead = words.clone();
    ahead.take("{");
    ahead.take("not");
    ahead.peek().is_some_and(|word| known_protocol(word).is_some())
}

fn addresses(words: &mut Words<'_>, body: &mut IpfwBody) -> Parsed<()> {
    body.protocols = or_block(words, protocol)?;
    words.expect("from")?;
    body.source = or_block(words, list)?;
    body.source_ports = optional_ports(words)?;
    words.expect("to")?;
    body.destination = or_block(words, list)?;
    body.destination_ports = optional_ports(words)?;
    Ok(())
}

fn optional_ports(words: &mut Words<'_>) -> Parsed<Vec<IpfwTerm<IpfwPorts>>> {
    let mut ahead = words.clone();
    ahead.take("{");
    ahead.take("not");
    if ahead.peek().is_some_and(are_ports) { or_block(words, ports) } else { Ok(Vec::new()) }
}

/// How states are kept, if the next word says so.
fn keep(words: &mut Words<'_>) -> Parsed<Option<IpfwKeep>> {
    Ok(Some(match words.peek() {
        Some("keep-state") => {
            words.next();
            IpfwKeep::KeepState(flow(words)?)
        }
        Some("record-state") => {
            words.next();
            IpfwKeep::RecordState(flow(words)?)
        }
        Some("limit") => {
            words.next();
            limit(words)?
        }
        _ => return Ok(None),
    }))
}

/// The name after a colon, or `default`.
pub(super) fn flow(words: &mut Words<'_>) -> Parsed<String> {
    let Some(name) = words.peek().and_then(|word| word.strip_prefix(':')) else {
        return Ok("default".to_owned());
    };
    words.next();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(words.error("a flow's name consists of letters, digits, `_`, `-` and `.`, as in :OUT"));
    }
    Ok(name.to_owned())
}

fn limit(words: &mut Words<'_>) -> Parsed<IpfwKeep> {
    let (mut source, mut source_port, mut destination, mut destination_port) = (false, false, false, false);
    loop {
        match words.peek() {
            Some("src-addr") => source = true,
            Some("src-port") => source_port = true,
            Some("dst-addr") => destination = true,
            Some("dst-port") => destination_port = true,
            Some("all") => [source, source_port, destination, destination_port] = [true; 4],
            _ => break,
        }
        words.next();
    }
    if !(source || source_port || destination || destination_port) {
        return Err(words.error_here(
            "`limit` counts by src-addr, src-port, dst-addr, dst-port or all; name at least one",
        ));
    }
    let most = words.number_of("a limit", NAMEABLE)?;
    Ok(IpfwKeep::Limit { source, source_port, destination, destination_port, most, flow: flow(words)? })
}
