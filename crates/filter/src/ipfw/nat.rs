//! `nat N config`: an instance of address translation.

use std::net::IpAddr;

use super::codes;
use super::config::{NatInstance, NatRedirect};
use super::words::{Parsed, Words};
use crate::packet::protocol::has_ports;

const SUPPORTED: &str = "if, ip, same_ports, deny_in, redirect_addr and redirect_port are";

/// Reads what follows `config`.
pub(super) fn instance(words: &mut Words<'_>) -> Parsed<NatInstance> {
    let mut nat = NatInstance::default();
    while let Some(word) = words.next() {
        match word {
            "if" => nat.interface = Some(words.need("an interface")?.to_owned()),
            "ip" => nat.address = Some(ip(words)?),
            "same_ports" => nat.same_ports = true,
            "deny_in" => nat.deny_in = true,
            "redirect_addr" => nat.redirects.push(redirect_addr(words)?),
            "redirect_port" => nat.redirects.push(redirect_port(words)?),
            other => return Err(words.error(format!("`{other}` is not supported; {SUPPORTED}"))),
        }
    }
    if nat.interface.is_some() == nat.address.is_some() {
        return Err(words.error("a nat instance has either an interface (if) or an address (ip)"));
    }
    Ok(nat)
}

fn ip(words: &mut Words<'_>) -> Parsed<IpAddr> {
    let word = words.need("an address")?;
    word.parse().map_err(|_| words.error(format!("`{word}` is no address; names of hosts are not resolved")))
}

fn redirect_addr(words: &mut Words<'_>) -> Parsed<NatRedirect> {
    Ok(NatRedirect { ports: None, host: ip(words)?, alias: Some(ip(words)?) })
}

/// `tcp HOST:PORT[-PORT] [ALIAS:]PORT[-PORT]`.
fn redirect_port(words: &mut Words<'_>) -> Parsed<NatRedirect> {
    let word = words.need("a protocol")?;
    let protocol = codes::protocol(word).filter(|number| has_ports(*number));
    let protocol =
        protocol.ok_or_else(|| words.error(format!("`{word}` has no ports; tcp, udp and sctp have")))?;
    let (host, to) = end(words)?;
    let host = host.ok_or_else(|| words.error("the host's address is missing, as in 192.0.2.9:8080"))?;
    let (alias, from) = end(words)?;
    if to.1 - to.0 != from.1 - from.0 {
        return Err(words.error("both ranges of ports must have the same length"));
    }
    Ok(NatRedirect { ports: Some((protocol, from, to.0)), host, alias })
}

/// `[ADDRESS:]PORT[-PORT]`.
fn end(words: &mut Words<'_>) -> Parsed<(Option<IpAddr>, (u16, u16))> {
    let word = words.need("an address and a port")?;
    let (address, ports) =
        word.rsplit_once(':').map_or((None, word), |(address, ports)| (Some(address), ports));
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let wrong = || words.error(format!("`{word}` is no [ADDRESS:]PORT[-PORT]"));
    let address = match address {
        None => None,
        Some(address) => Some(address.parse().map_err(|_| wrong())?),
    };
    match (codes::port(first), codes::port(last)) {
        (Some(first), Some(last)) if first <= last => Ok((address, (first, last))),
        _ => Err(wrong()),
    }
}
