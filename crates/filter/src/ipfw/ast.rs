use std::net::{Ipv4Addr, Ipv6Addr};

use crate::rule::{Side, TableKind};

/// A rule as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct IpfwRule {
    pub number: u16,
    pub set: u8,
    /// `prob`: the share of packets that the rule is tried on.
    pub probability: Option<f64>,
    pub action: IpfwAction,
    pub log: bool,
    /// `tag`: the tag that matching packets get.
    pub tag: Option<u16>,
    pub body: IpfwBody,
    pub keep: Option<IpfwKeep>,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfwAction {
    Allow,
    Deny,
    Count,
    Reject(IpfwReject),
    SkipTo(u16),
    /// The name of the flow.
    CheckState(String),
    /// The number of the instance.
    Nat(u16),
}

/// How a packet is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpfwReject {
    Reset,
    Reset6,
    /// The code.
    Unreach(u8),
    Unreach6(u8),
}

/// What a rule matches. Lists of lists: all outer ones must match, any of the inner ones suffices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpfwBody {
    /// Empty if the rule has no protocol and addresses at all.
    pub protocols: Vec<IpfwTerm<IpfwProtocol>>,
    pub source: Vec<IpfwTerm<Vec<IpfwAddress>>>,
    pub source_ports: Vec<IpfwTerm<IpfwPorts>>,
    pub destination: Vec<IpfwTerm<Vec<IpfwAddress>>>,
    pub destination_ports: Vec<IpfwTerm<IpfwPorts>>,
    pub options: Vec<Vec<IpfwTerm<IpfwOption>>>,
}

/// Something, or with `not` its opposite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfwTerm<T> {
    pub negated: bool,
    pub value: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpfwProtocol {
    Any,
    Ip4,
    Ip6,
    Number(u8),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfwAddress {
    Any,
    /// The addresses of this host: of both families, or of IPv6.
    Me,
    Me6,
    /// An address and a mask.
    Inet(Ipv4Addr, Ipv4Addr),
    /// The last bytes of addresses in a network.
    InetSet(Ipv4Addr, u8, Vec<(u8, u8)>),
    Inet6(Ipv6Addr, u8),
    Table(String, Option<u32>),
}

/// Ranges of numbers.
pub type IpfwPorts = Vec<(u16, u16)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfwInterface {
    Any,
    /// A name, or one that ends in `*`.
    Name(String),
    Address(std::net::IpAddr),
}

/// A test after the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfwOption {
    In,
    Out,
    Via(IpfwInterface),
    Recv(IpfwInterface),
    Xmit(IpfwInterface),
    Setup,
    Established,
    /// The flags that must be set and those that must not be.
    TcpFlags(u8, u8),
    TcpSeq(u32),
    TcpAck(u32),
    TcpWin(IpfwPorts),
    IcmpTypes(Vec<u8>),
    Icmp6Types(Vec<u8>),
    Frag,
    /// The bits that must be set and those that must not be.
    IpTos(u8, u8),
    Dscp(Vec<u8>),
    IpPrecedence(u8),
    IpTtl(IpfwPorts),
    IpLen(IpfwPorts),
    IpVersion(u8),
    Protocol(IpfwProtocol),
    SourceIp(Vec<IpfwAddress>),
    DestinationIp(Vec<IpfwAddress>),
    SourcePort(IpfwPorts),
    DestinationPort(IpfwPorts),
    /// Ranges of tags, of which the packet has one.
    Tagged(IpfwPorts),
    /// `lookup`: what is looked up, and the name of the table.
    Lookup(IpfwKey, String),
}

/// What the option `lookup` looks up, with the bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpfwKey {
    Ip(Side),
    Ip4(Side, Ipv4Addr),
    Ip6(Side, Ipv6Addr),
    Port(Side, u32),
    Dscp(u32),
    /// The number of the rule itself.
    RuleNumber(u32),
}

impl IpfwKey {
    /// What a table has in which it may be found.
    pub fn kind(self) -> TableKind {
        match self {
            IpfwKey::Ip(_) | IpfwKey::Ip4(..) | IpfwKey::Ip6(..) => TableKind::Addresses,
            IpfwKey::Port(..) | IpfwKey::Dscp(_) | IpfwKey::RuleNumber(_) => TableKind::Numbers,
        }
    }
}

/// How a rule keeps states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpfwKeep {
    KeepState(String),
    RecordState(String),
    /// Which parts of the flow are counted together, how many states they may have, and the name of the flow.
    Limit {
        source: bool,
        source_port: bool,
        destination: bool,
        destination_port: bool,
        most: u32,
        flow: String,
    },
}

impl IpfwRule {
    /// The name of the flow whose states it looks for or keeps.
    pub(super) fn flow(&self) -> Option<&str> {
        match (&self.action, &self.keep) {
            (IpfwAction::CheckState(flow), _) => Some(flow).filter(|flow| *flow != "any").map(String::as_str),
            (
                _,
                Some(IpfwKeep::KeepState(flow) | IpfwKeep::RecordState(flow) | IpfwKeep::Limit { flow, .. }),
            ) => Some(flow),
            _ => None,
        }
    }

    /// The interfaces that it names; a name that ends in `*` stands for all that begin so.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.body.options.iter().flatten().filter_map(|term| match &term.value {
            IpfwOption::Via(IpfwInterface::Name(name))
            | IpfwOption::Recv(IpfwInterface::Name(name))
            | IpfwOption::Xmit(IpfwInterface::Name(name)) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The names of its tables, and what they have to have.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&str, TableKind)> {
        let ends = self.body.source.iter().chain(&self.body.destination).flat_map(|term| &term.value);
        let options = || self.body.options.iter().flatten().map(|term| &term.value);
        let lists = options().flat_map(|option| match option {
            IpfwOption::SourceIp(list) | IpfwOption::DestinationIp(list) => &list[..],
            _ => &[],
        });
        let in_lists = ends.chain(lists).filter_map(|address| match address {
            IpfwAddress::Table(name, _) => Some((name.as_str(), TableKind::Addresses)),
            _ => None,
        });
        let looked_up = options().filter_map(|option| match option {
            IpfwOption::Lookup(key, name) => Some((name.as_str(), key.kind())),
            _ => None,
        });
        in_lists.chain(looked_up)
    }
}
