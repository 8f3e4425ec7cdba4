//! Rules as `ipfw list` shows them.

use std::fmt::{self, Display, Formatter};
use std::net::Ipv4Addr;

use super::addresses::inet_mask;
use super::ast::{
    IpfwAction, IpfwAddress, IpfwInterface, IpfwKeep, IpfwOption, IpfwProtocol, IpfwReject, IpfwRule,
    IpfwTerm,
};
use super::codes;
use super::config::{IpfwConfig, NatRedirect};

impl Display for IpfwConfig {
    /// The rules of all enabled sets, and the default rule.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for rule in self.rules.iter().filter(|rule| self.disabled_sets >> rule.set & 1 == 0) {
            writeln!(f, "{rule}")?;
        }
        writeln!(f, "65535 deny ip from any to any")
    }
}

impl IpfwRule {
    /// How many bytes of a printed rule are its number and the blank behind it.
    pub(super) const NUMBER_LENGTH: usize = 6;
}

impl Display for IpfwRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:05}", self.number)?;
        if let Some(share) = self.probability {
            write!(f, " prob {share:.6}")?;
        }
        write!(f, " {}", self.action)?;
        if self.log {
            write!(f, " log")?;
        }
        if let Some(tag) = self.tag {
            write!(f, " tag {tag}")?;
        }
        let body = &self.body;
        if !body.protocols.is_empty() {
            write!(f, " {} from ", block(&body.protocols, IpfwProtocol::to_string))?;
            write!(f, "{}", block(&body.source, |list| joined(list)))?;
            if !body.source_ports.is_empty() {
                write!(f, " {}", block(&body.source_ports, |ports| ranges(ports)))?;
            }
            write!(f, " to {}", block(&body.destination, |list| joined(list)))?;
            if !body.destination_ports.is_empty() {
                write!(
                    f,
                    " {}",
                    block(&body.destination_ports, |ports| format!("dst-port {}", ranges(ports)))
                )?;
            }
        }
        for option in &body.options {
            write!(f, " {}", block(option, IpfwOption::to_string))?;
        }
        if let Some(keep) = &self.keep {
            write!(f, " {keep}")?;
        }
        self.comment.as_ref().map_or(Ok(()), |comment| write!(f, " // {comment}"))
    }
}

/// The terms, between braces if there are several.
fn block<T>(terms: &[IpfwTerm<T>], show: impl Fn(&T) -> String) -> String {
    let one = |term: &IpfwTerm<T>| format!("{}{}", if term.negated { "not " } else { "" }, show(&term.value));
    let all: Vec<_> = terms.iter().map(one).collect();
    if all.len() == 1 { all.concat() } else { format!("{{ {} }}", all.join(" or ")) }
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn ranges(ports: &[(u16, u16)]) -> String {
    let one = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ports.iter().map(one).collect::<Vec<_>>().join(",")
}

impl Display for IpfwAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwAction::Allow => f.write_str("allow"),
            IpfwAction::Deny => f.write_str("deny"),
            IpfwAction::Count => f.write_str("count"),
            IpfwAction::Reject(reject) => reject.fmt(f),
            IpfwAction::SkipTo(target) => write!(f, "skipto {target}"),
            IpfwAction::CheckState(flow) => write!(f, "check-state :{flow}"),
            IpfwAction::Nat(number) => write!(f, "nat {number}"),
        }
    }
}

impl Display for IpfwReject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwReject::Reset => f.write_str("reset"),
            IpfwReject::Reset6 => f.write_str("reset6"),
            IpfwReject::Unreach(1) => f.write_str("reject"),
            IpfwReject::Unreach(code) => write!(f, "unreach {}", codes::unreach_name(*code)),
            IpfwReject::Unreach6(code) => write!(f, "unreach6 {}", codes::unreach6_name(*code)),
        }
    }
}

impl Display for NatRedirect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let NatRedirect { ports, host, alias } = self;
        let Some((protocol, from @ (first, last), to)) = ports else {
            return alias.map_or(Ok(()), |alias| write!(f, "redirect_addr {host} {alias}"));
        };
        let to = (*to, to.saturating_add(last - first));
        write!(f, "redirect_port {} {host}:{} ", codes::protocol_name(*protocol), ranges(&[to]))?;
        alias.map_or(Ok(()), |alias| write!(f, "{alias}:"))?;
        f.write_str(&ranges(&[*from]))
    }
}

impl Display for IpfwProtocol {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwProtocol::Any => f.write_str("ip"),
            IpfwProtocol::Ip4 => f.write_str("ip4"),
            IpfwProtocol::Ip6 => f.write_str("ip6"),
            IpfwProtocol::Number(number) => f.write_str(&codes::protocol_name(*number)),
        }
    }
}

impl Display for IpfwAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwAddress::Any => f.write_str("any"),
            IpfwAddress::Me => f.write_str("me"),
            IpfwAddress::Me6 => f.write_str("me6"),
            IpfwAddress::Inet(address, mask) => inet(f, *address, *mask),
            IpfwAddress::InetSet(network, length, bytes) => {
                let wide: Vec<_> =
                    bytes.iter().map(|(first, last)| ((*first).into(), (*last).into())).collect();
                write!(f, "{network}/{length}{{{}}}", ranges(&wide))
            }
            IpfwAddress::Inet6(address, 128) => write!(f, "{address}"),
            IpfwAddress::Inet6(address, length) => write!(f, "{address}/{length}"),
            IpfwAddress::Table(name, None) => write!(f, "table({name})"),
            IpfwAddress::Table(name, Some(value)) => write!(f, "table({name},{value})"),
        }
    }
}

fn inet(f: &mut Formatter<'_>, address: Ipv4Addr, mask: Ipv4Addr) -> fmt::Result {
    let length = mask.to_bits().leading_ones() as u8;
    match length {
        32 => write!(f, "{address}"),
        _ if inet_mask(length) == mask.to_bits() => write!(f, "{address}/{length}"),
        _ => write!(f, "{address}:{mask}"),
    }
}

impl Display for IpfwInterface {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwInterface::Any => f.write_str("any"),
            IpfwInterface::Name(name) => f.write_str(name),
            IpfwInterface::Address(address) => address.fmt(f),
        }
    }
}

impl Display for IpfwOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwOption::In => f.write_str("in"),
            IpfwOption::Out => f.write_str("out"),
            IpfwOption::Via(interface) => write!(f, "via {interface}"),
            IpfwOption::Recv(interface) => write!(f, "recv {interface}"),
            IpfwOption::Xmit(interface) => write!(f, "xmit {interface}"),
            IpfwOption::Frag => f.write_str("frag"),
            IpfwOption::SourceIp(list) => write!(f, "src-ip {}", joined(list)),
            IpfwOption::DestinationIp(list) => write!(f, "dst-ip {}", joined(list)),
            IpfwOption::SourcePort(ports) => write!(f, "src-port {}", ranges(ports)),
            IpfwOption::DestinationPort(ports) => write!(f, "dst-port {}", ranges(ports)),
            IpfwOption::Protocol(family @ (IpfwProtocol::Ip4 | IpfwProtocol::Ip6)) => write!(f, "{family}"),
            IpfwOption::Protocol(protocol) => write!(f, "proto {protocol}"),
            IpfwOption::Tagged(tags) => write!(f, "tagged {}", ranges(tags)),
            IpfwOption::Lookup(key, table) => write!(f, "lookup {key} {table}"),
            other => header_option(f, other),
        }
    }
}

fn header_option(f: &mut Formatter<'_>, option: &IpfwOption) -> fmt::Result {
    match option {
        IpfwOption::Setup => f.write_str("setup"),
        IpfwOption::Established => f.write_str("established"),
        IpfwOption::TcpFlags(set, clear) => {
            write!(f, "tcpflags {}", codes::flags(&codes::TCP_FLAGS, *set, *clear))
        }
        IpfwOption::TcpSeq(seq) => write!(f, "tcpseq {seq}"),
        IpfwOption::TcpAck(ack) => write!(f, "tcpack {ack}"),
        IpfwOption::TcpWin(windows) => write!(f, "tcpwin {}", ranges(windows)),
        IpfwOption::IcmpTypes(types) => write!(f, "icmptypes {}", joined(types)),
        IpfwOption::Icmp6Types(types) => write!(f, "icmp6types {}", joined(types)),
        IpfwOption::IpTos(set, clear) => write!(f, "iptos {}", codes::flags(&codes::TOS, *set, *clear)),
        IpfwOption::Dscp(points) => {
            let names: Vec<_> = points.iter().map(|point| codes::dscp_name(*point)).collect();
            write!(f, "dscp {}", names.join(","))
        }
        IpfwOption::IpPrecedence(precedence) => write!(f, "ipprecedence {precedence}"),
        IpfwOption::IpTtl(ttls) => write!(f, "ipttl {}", ranges(ttls)),
        IpfwOption::IpLen(lengths) => write!(f, "iplen {}", ranges(lengths)),
        IpfwOption::IpVersion(version) => write!(f, "ipversion {version}"),
        _ => Ok(()),
    }
}

impl Display for IpfwKeep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IpfwKeep::KeepState(flow) => write!(f, "keep-state :{flow}"),
            IpfwKeep::RecordState(flow) => write!(f, "record-state :{flow}"),
            IpfwKeep::Limit { source, source_port, destination, destination_port, most, flow } => {
                let parts = [
                    (source, "src-addr"),
                    (source_port, "src-port"),
                    (destination, "dst-addr"),
                    (destination_port, "dst-port"),
                ];
                let named: Vec<_> =
                    parts.iter().filter(|(counts, _)| **counts).map(|(_, name)| *name).collect();
                write!(f, "limit {} {most} :{flow}", named.join(" "))
            }
        }
    }
}
