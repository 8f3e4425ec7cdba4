//! `from` and `to`, and the addresses in them.

use crate::pf::address::{InterfaceAddresses, InterfaceModifiers, InterfacePart};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::parse::numbers::{number, port_test};
use crate::pf::parse::tokens::{Tokens, is_plain};
use crate::pf::syntax::{HostKind, HostSyntax, PeerSyntax};
use crate::pf::token::TokenKind;

/// The addresses and ports of a rule; `all` stands for both ends.
pub struct FromTo {
    pub from: PeerSyntax,
    pub oses: Vec<String>,
    pub to: PeerSyntax,
}

pub fn from_to(tokens: &mut Tokens) -> PfResult<FromTo> {
    if tokens.eat_word("all") {
        return Ok(FromTo { from: PeerSyntax::default(), oses: Vec::new(), to: PeerSyntax::default() });
    }
    let from = if tokens.eat_word("from") { peer(tokens)? } else { PeerSyntax::default() };
    let oses = if tokens.eat_word("os") { tokens.list(fingerprint)? } else { Vec::new() };
    let to = if tokens.eat_word("to") { destination(tokens)? } else { PeerSyntax::default() };
    Ok(FromTo { from, oses, to })
}

fn destination(tokens: &mut Tokens) -> PfResult<PeerSyntax> {
    let peer = peer(tokens)?;
    match peer.hosts.iter().find(|host| matches!(host.kind, HostKind::UrpfFailed)) {
        Some(host) => {
            let problem = "\"urpf-failed\" is not permitted in a destination address";
            Err(PfError::invalid(&host.position, problem, "write it after 'from'"))
        }
        None => Ok(peer),
    }
}

fn fingerprint(tokens: &mut Tokens) -> PfResult<String> {
    let position = tokens.position();
    let name = tokens.text("the name of an operating system")?;
    without_quotes(name, &position)
}

/// Text that is printed in quotes has none inside.
pub fn without_quotes(text: String, position: &Position) -> PfResult<String> {
    if text.contains('"') {
        return Err(PfError::invalid(position, "the text has a quotation mark inside", "leave it out"));
    }
    Ok(text)
}

fn peer(tokens: &mut Tokens) -> PfResult<PeerSyntax> {
    let hosts = if tokens.is_word("port") { Vec::new() } else { hosts(tokens)? };
    let ports = if tokens.eat_word("port") { tokens.list(port_test)? } else { Vec::new() };
    Ok(PeerSyntax { hosts, ports })
}

/// One address, or a list of them, perhaps with lists inside.
pub fn hosts(tokens: &mut Tokens) -> PfResult<Vec<HostSyntax>> {
    let hosts = if tokens.is_sign('{') { tokens.list(hosts)?.concat() } else { vec![host(tokens)?] };
    let any = hosts.iter().find(|host| hosts.len() > 1 && matches!(host.kind, HostKind::Any));
    match any {
        Some(any) => {
            let problem = "'any' stands in a list with other addresses, where pfctl ignores it";
            Err(PfError::invalid(&any.position, problem, "write 'any' alone, or leave it out"))
        }
        None => Ok(hosts),
    }
}

pub fn host(tokens: &mut Tokens) -> PfResult<HostSyntax> {
    let position = tokens.position();
    let not = tokens.eat_sign('!');
    Ok(HostSyntax { position, not, kind: kind(tokens)? })
}

fn kind(tokens: &mut Tokens) -> PfResult<HostKind> {
    let keyword = match tokens.word() {
        Some("any") => HostKind::Any,
        Some("no-route") => HostKind::NoRoute,
        Some("urpf-failed") => HostKind::UrpfFailed,
        _ => return address(tokens),
    };
    tokens.advance();
    Ok(keyword)
}

fn address(tokens: &mut Tokens) -> PfResult<HostKind> {
    if tokens.is_sign('<') {
        return table_name(tokens).map(HostKind::Table);
    }
    if tokens.eat_sign('(') {
        return dynamic(tokens).map(HostKind::Dynamic);
    }
    let text = address_text(tokens)?;
    if tokens.eat_sign('-') {
        return Ok(HostKind::Range { first: text, last: address_text(tokens)? });
    }
    Ok(HostKind::Name { text, length: length(tokens)? })
}

/// The text of an address, of which `10` in `10/8` looks like a number.
fn address_text(tokens: &mut Tokens) -> PfResult<String> {
    if let TokenKind::Number(number) = *tokens.kind() {
        tokens.advance();
        return Ok(number.to_string());
    }
    tokens.text("an address, an interface, a table or 'any'")
}

fn length(tokens: &mut Tokens) -> PfResult<Option<u8>> {
    if tokens.eat_sign('/') { number(tokens, "the length of a prefix", 128).map(Some) } else { Ok(None) }
}

/// `<name>`
pub fn table_name(tokens: &mut Tokens) -> PfResult<String> {
    tokens.expect_sign('<')?;
    let position = tokens.position();
    let name = tokens.name("a table")?;
    tokens.expect_sign('>')?;
    if name.len() > 31 {
        return Err(PfError::invalid(
            &position,
            format!("table name '{name}' too long"),
            "use at most 31 characters",
        ));
    }
    Ok(name)
}

/// What stands in parentheses, of which the first is read.
fn dynamic(tokens: &mut Tokens) -> PfResult<InterfaceAddresses> {
    let position = tokens.position();
    let text = tokens.text("an interface")?;
    let (interface, modifiers) = split_modifiers(&text);
    if !is_plain(interface) || interface.contains(':') || interface.len() > 15 {
        return Err(PfError::invalid(
            &position,
            format!("({text}) is no interface"),
            "write (em0) or (em0:network)",
        ));
    }
    tokens.expect_sign(')')?;
    Ok(InterfaceAddresses { interface: interface.to_owned(), modifiers, length: length(tokens)? })
}

/// The name of an interface, and what stands after colons.
pub fn split_modifiers(text: &str) -> (&str, InterfaceModifiers) {
    let mut modifiers = InterfaceModifiers::default();
    let mut name = text;
    while let Some((rest, last)) = name.rsplit_once(':') {
        let part = match last {
            "network" => Some(InterfacePart::Network),
            "broadcast" => Some(InterfacePart::Broadcast),
            "peer" => Some(InterfacePart::Peer),
            "0" => None,
            _ => return (name, modifiers),
        };
        if part.is_some() && modifiers.part.is_some() {
            return (name, modifiers);
        }
        modifiers.part = modifiers.part.or(part);
        modifiers.first_only |= part.is_none();
        name = rest;
    }
    (name, modifiers)
}
