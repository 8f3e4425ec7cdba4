//! The tests after a rule's addresses.

use std::collections::BTreeSet;

use super::addresses::{known_protocol, list, plain_numbers, ports, protocol};
use super::ast::{IpfwInterface, IpfwOption, IpfwPorts, IpfwProtocol};
use super::codes;
use super::lookup::key;
use super::words::{Parsed, Words};

const SUPPORTED: &str = "in, out, via, recv, xmit, setup, established, tcpflags, tcpseq, tcpack, tcpwin, icmptypes, \
                         icmp6types, frag, iptos, dscp, ipprecedence, ipttl, iplen, ipversion, proto, src-ip, dst-ip, \
                         src-ip6, dst-ip6, src-port, dst-port, tagged, lookup, keep-state, record-state, limit";

/// Reads one option.
pub(super) fn option(words: &mut Words<'_>) -> Parsed<IpfwOption> {
    let word = words.need("an option")?;
    Ok(match word {
        "in" => IpfwOption::In,
        "out" => IpfwOption::Out,
        "via" => IpfwOption::Via(interface(words)?),
        "recv" => IpfwOption::Recv(interface(words)?),
        "xmit" => IpfwOption::Xmit(interface(words)?),
        "frag" | "fragment" => IpfwOption::Frag,
        "ip4" | "ipv4" => IpfwOption::Protocol(IpfwProtocol::Ip4),
        "ip6" | "ipv6" => IpfwOption::Protocol(IpfwProtocol::Ip6),
        "src-ip" | "src-ip6" | "src-ipv6" => IpfwOption::SourceIp(list(words)?),
        "dst-ip" | "dst-ip6" | "dst-ipv6" => IpfwOption::DestinationIp(list(words)?),
        "src-port" => IpfwOption::SourcePort(ports(words)?),
        "dst-port" => IpfwOption::DestinationPort(ports(words)?),
        "proto" => IpfwOption::Protocol(protocol(words)?),
        "tagged" => IpfwOption::Tagged(tags(words)?),
        "lookup" => IpfwOption::Lookup(key(words)?, words.need("the name of a table")?.to_owned()),
        _ => return transport(words, word),
    })
}

fn transport(words: &mut Words<'_>, word: &str) -> Parsed<IpfwOption> {
    Ok(match word {
        "setup" => IpfwOption::Setup,
        "established" | "estab" => IpfwOption::Established,
        "tcpflags" | "tcpflgs" => {
            let (set, clear) = bits(words, &codes::TCP_FLAGS, "flags of TCP")?;
            IpfwOption::TcpFlags(set, clear)
        }
        "tcpseq" => IpfwOption::TcpSeq(words.number("a sequence number", u32::MAX)?),
        "tcpack" => IpfwOption::TcpAck(words.number("a sequence number", u32::MAX)?),
        "tcpwin" => IpfwOption::TcpWin(plain_numbers(words, "window sizes")?),
        "icmptypes" | "icmptype" => IpfwOption::IcmpTypes(types(words, 31)?),
        "icmp6types" | "icmp6type" => IpfwOption::Icmp6Types(types(words, u8::MAX)?),
        _ => return header(words, word),
    })
}

fn header(words: &mut Words<'_>, word: &str) -> Parsed<IpfwOption> {
    Ok(match word {
        "iptos" => {
            let (set, clear) = bits(words, &codes::TOS, "types of service")?;
            IpfwOption::IpTos(set, clear)
        }
        "dscp" => IpfwOption::Dscp(dscp(words)?),
        "ipprecedence" => IpfwOption::IpPrecedence(words.number("a precedence", 7)? as u8),
        "ipttl" => IpfwOption::IpTtl(plain_numbers(words, "TTLs")?),
        "iplen" => IpfwOption::IpLen(plain_numbers(words, "lengths")?),
        "ipversion" | "ipver" => IpfwOption::IpVersion(words.number("a version", 15)? as u8),
        _ if known_protocol(word).is_some() => {
            return Err(
                words.error(format!("`{word}` is a protocol; write `proto {word}` among the options"))
            );
        }
        _ => return Err(words.error(format!("`{word}` is not supported; options are {SUPPORTED}"))),
    })
}

/// A tag, which is never zero.
pub(super) fn tag(words: &mut Words<'_>) -> Parsed<u16> {
    match words.number("a tag", 65534)? {
        0 => Err(words.error("a tag is a number from 1 to 65534")),
        tag => Ok(tag as u16),
    }
}

fn tags(words: &mut Words<'_>) -> Parsed<IpfwPorts> {
    let tags = plain_numbers(words, "tags")?;
    let are_tags = tags.iter().all(|(first, last)| *first > 0 && *last < u16::MAX);
    if are_tags { Ok(tags) } else { Err(words.error("tags are numbers from 1 to 65534")) }
}

pub(super) fn interface(words: &mut Words<'_>) -> Parsed<IpfwInterface> {
    let word = words.need("an interface")?;
    if word.starts_with("table(") {
        return Err(words.error("tables of interfaces are not supported; name the interfaces in an or-block"));
    }
    let name = || IpfwInterface::Name(word.to_owned());
    Ok(if word == "any" {
        IpfwInterface::Any
    } else {
        word.parse().map_or_else(|_| name(), IpfwInterface::Address)
    })
}

/// The bits that must be set, and those with an exclamation mark, which must not be.
fn bits(words: &mut Words<'_>, names: &[(&str, u8)], what: &str) -> Parsed<(u8, u8)> {
    let word = words.need(what)?;
    let (mut set, mut clear) = (0, 0);
    for name in word.split(',') {
        let (target, name) = name.strip_prefix('!').map_or((&mut set, name), |name| (&mut clear, name));
        let bit = codes::named(names, name);
        *target |= bit.ok_or_else(|| {
            let known: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            words.error(format!("`{name}` is none of the {what}: {}", known.join(", ")))
        })?;
    }
    Ok((set, clear))
}

fn types(words: &mut Words<'_>, most: u8) -> Parsed<Vec<u8>> {
    let word = words.need("types of messages")?;
    let one = |item: &str| item.parse().ok().filter(|number| *number <= most);
    let types: Option<BTreeSet<_>> = word.split(',').map(one).collect();
    types.map(Vec::from_iter).ok_or_else(|| {
        words.error(format!("`{word}` is no list of types; write numbers up to {most} with commas"))
    })
}

fn dscp(words: &mut Words<'_>) -> Parsed<Vec<u8>> {
    let word = words.need("code points")?;
    let points: Option<BTreeSet<_>> = word.split(',').map(|item| codes::dscp(&item.to_lowercase())).collect();
    points.map(Vec::from_iter).ok_or_else(|| {
        words.error(format!("`{word}` is no list of code points; write names such as ef or numbers up to 63"))
    })
}
