//! From the terms of a rule to clauses of tests.

use std::collections::BTreeMap;

use super::ast::{
    IpfwAddress, IpfwInterface, IpfwKey, IpfwOption, IpfwPorts, IpfwProtocol, IpfwRule, IpfwTerm,
};
use crate::address::{Address, Family};
use crate::interfaces::Interfaces;
use crate::packet::Direction;
use crate::packet::protocol::tcp::{ACK, RST, SYN};
use crate::rule::{AddressMatch, ByteSet, Clause, FragmentTest, Literal, PortRange, Side, TableId, Test};

/// The addresses of this host, and those of IPv6 among them.
pub(super) const ME: TableId = TableId(0);
pub(super) const ME6: TableId = TableId(1);

/// What names in rules stand for.
pub(super) struct RuleNames<'a> {
    pub interfaces: &'a Interfaces,
    pub tables: BTreeMap<&'a str, TableId>,
    /// The bit of each tag.
    pub tags: BTreeMap<u16, u16>,
}

/// What a term asks: of each list any test must pass.
pub(super) struct Group(Vec<Vec<Test>>);

impl Group {
    fn any(tests: Vec<Test>) -> Group {
        Group(vec![tests])
    }

    fn all(tests: Vec<Test>) -> Group {
        Group(tests.into_iter().map(|test| vec![test]).collect())
    }
}

/// Each of these lists of literals.
pub(super) type Lists = Vec<Vec<Literal>>;

/// The or-blocks of a rule: a block holds if all of any of its lists do, where of each list any literal suffices.
pub(super) fn or_blocks(rule: &IpfwRule, names: &RuleNames<'_>) -> Vec<Vec<Lists>> {
    let body = &rule.body;
    let mut blocks = vec![
        block(&body.protocols, protocol),
        block(&body.source, |list| addresses(list, Side::Source, names)),
        block(&body.source_ports, source_ports),
        block(&body.destination, |list| addresses(list, Side::Destination, names)),
        block(&body.destination_ports, destination_ports),
    ];
    blocks.extend(body.options.iter().map(|terms| block(terms, |term| option(term, rule.number, names))));
    blocks.into_iter().flatten().collect()
}

/// `None` without terms, about which the rule does not ask.
fn block<T>(terms: &[IpfwTerm<T>], lower: impl Fn(&T) -> Group) -> Option<Vec<Lists>> {
    let block = || terms.iter().flat_map(|term| lists(term.negated, lower(&term.value))).collect();
    (!terms.is_empty()).then(block)
}

/// A term fails if all tests of any list fail.
fn lists(negated: bool, Group(tests): Group) -> Vec<Lists> {
    let literals =
        |tests: Vec<Test>| tests.into_iter().map(|test| Literal { negated, test }).collect::<Vec<_>>();
    let lists = tests.into_iter().map(literals);
    if negated {
        return lists.map(|list| list.into_iter().map(|literal| vec![literal]).collect()).collect();
    }
    vec![lists.collect()]
}

/// The clauses that hold if all of any of the lists do.
pub(super) fn any_of(block: &[Lists]) -> Vec<Clause> {
    block.iter().fold(vec![Clause::default()], |clauses, lists| joined(&clauses, lists))
}

/// The clauses that hold if those before do, or all of the lists: a clause for each clause with each list. A clause that has
/// one of the lists already stays as it is, because the others follow from it. So `xmit a or xmit b or xmit c` is `out` and
/// one clause of the interfaces.
pub(super) fn joined(clauses: &[Clause], lists: &Lists) -> Vec<Clause> {
    let with = |clause: &Clause, list: &[Literal]| Clause([&clause.0, list].concat());
    let has = |clause: &Clause, list: &[Literal]| list.iter().all(|literal| clause.0.contains(literal));
    let each = |clause: &Clause| match lists.iter().any(|list| has(clause, list)) {
        true => vec![clause.clone()],
        false => lists.iter().map(|list| with(clause, list)).collect(),
    };
    without_implied(clauses.iter().flat_map(each).collect())
}

/// Leaves out clauses that follow from those of one literal.
fn without_implied(mut clauses: Vec<Clause>) -> Vec<Clause> {
    let is_single = |clause: &Clause| clause.0.len() == 1;
    let single: Vec<_> =
        clauses.iter().filter(|clause| is_single(clause)).flat_map(|c| c.0.clone()).collect();
    clauses.retain(|clause| is_single(clause) || !clause.0.iter().any(|literal| single.contains(literal)));
    clauses
}

pub(super) fn protocol(protocol: &IpfwProtocol) -> Group {
    match protocol {
        IpfwProtocol::Any => Group::all(Vec::new()),
        IpfwProtocol::Ip4 => Group::any(vec![Test::Family(Family::Inet)]),
        IpfwProtocol::Ip6 => Group::any(vec![Test::Family(Family::Inet6)]),
        IpfwProtocol::Number(number) => Group::any(vec![Test::Protocol([*number].into_iter().collect())]),
    }
}

pub(super) fn addresses(list: &[IpfwAddress], side: Side, names: &RuleNames<'_>) -> Group {
    if list.contains(&IpfwAddress::Any) {
        return Group::all(Vec::new());
    }
    let test = |matched| match side {
        Side::Source => Test::Source(matched),
        Side::Destination => Test::Destination(matched),
    };
    Group::any(list.iter().flat_map(|item| address(item, names)).map(test).collect())
}

fn address(item: &IpfwAddress, names: &RuleNames<'_>) -> Vec<AddressMatch> {
    match item {
        // The caller has looked for it.
        IpfwAddress::Any => Vec::new(),
        IpfwAddress::Me => vec![AddressMatch::Table(ME)],
        IpfwAddress::Me6 => vec![AddressMatch::Table(ME6)],
        IpfwAddress::Inet(address, mask) => vec![masked(address.to_bits(), mask.to_bits())],
        IpfwAddress::InetSet(network, _, bytes) => {
            let end = |byte: u8| Address::inet(network.to_bits() | u32::from(byte));
            bytes.iter().map(|(first, last)| AddressMatch::Range(end(*first), end(*last))).collect()
        }
        IpfwAddress::Inet6(address, length) => vec![AddressMatch::prefix((*address).into(), *length)],
        IpfwAddress::Table(name, value) => {
            let of = |id: &TableId| match value {
                None => AddressMatch::Table(*id),
                Some(value) => AddressMatch::TableValue(*id, *value),
            };
            names.tables.get(name.as_str()).map(of).into_iter().collect()
        }
    }
}

fn masked(address: u32, mask: u32) -> AddressMatch {
    let length = mask.leading_ones();
    if length + mask.trailing_zeros() >= 32 {
        return AddressMatch::prefix(Address::inet(address), length as u8);
    }
    AddressMatch::Mask(Address::inet(address), Address(u128::MAX << 32 | u128::from(mask)))
}

pub(super) fn source_ports(ports: &IpfwPorts) -> Group {
    Group::any(port_ranges(ports).map(Test::SourcePort).collect())
}

pub(super) fn destination_ports(ports: &IpfwPorts) -> Group {
    Group::any(port_ranges(ports).map(Test::DestinationPort).collect())
}

fn port_ranges(ports: &IpfwPorts) -> impl Iterator<Item = PortRange> {
    ports.iter().map(|(first, last)| PortRange { first: *first, last: *last })
}

fn option(option: &IpfwOption, rule: u16, names: &RuleNames<'_>) -> Group {
    let one = |test| Group::any(vec![test]);
    match option {
        IpfwOption::In => one(Test::Direction(Direction::In)),
        IpfwOption::Out => one(Test::Direction(Direction::Out)),
        IpfwOption::Via(interface) => of_interface(interface, None, names),
        IpfwOption::Recv(interface) => one(Test::ReceivedOn(numbers(interface, names))),
        IpfwOption::Xmit(interface) => of_interface(interface, Some(Direction::Out), names),
        IpfwOption::Frag => one(Test::Fragment(FragmentTest::Later)),
        IpfwOption::Protocol(number) => protocol(number),
        IpfwOption::SourceIp(list) => addresses(list, Side::Source, names),
        IpfwOption::DestinationIp(list) => addresses(list, Side::Destination, names),
        IpfwOption::SourcePort(ports) => source_ports(ports),
        IpfwOption::DestinationPort(ports) => destination_ports(ports),
        IpfwOption::Tagged(tags) => one(Test::TagBits(tag_bits(tags, names))),
        IpfwOption::Lookup(key, table) => lookup(*key, table, rule, names),
        other => header_option(other),
    }
}

fn lookup(key: IpfwKey, table: &str, rule: u16, names: &RuleNames<'_>) -> Group {
    let test = |id: &TableId| key.test(rule, *id);
    Group::any(names.tables.get(table).map(test).into_iter().collect())
}

/// The bits of these tags. Tags that no rule sets have none.
fn tag_bits(tags: &IpfwPorts, names: &RuleNames<'_>) -> u16 {
    let bits = tags.iter().flat_map(|(first, last)| names.tags.range(first..=last));
    bits.fold(0, |all, (_, bit)| all | bit)
}

fn header_option(option: &IpfwOption) -> Group {
    let one = |test| Group::any(vec![test]);
    let inet = |test| Group::all(vec![Test::Family(Family::Inet), test]);
    let types = |types: &[u8]| Test::IcmpType(types.iter().copied().collect::<ByteSet>());
    match option {
        IpfwOption::Setup => one(Test::TcpFlags { set: SYN, mask: SYN | ACK }),
        IpfwOption::Established => one(Test::TcpAnyFlag(RST | ACK)),
        IpfwOption::TcpFlags(set, clear) => one(Test::TcpFlags { set: *set, mask: set | clear }),
        IpfwOption::TcpSeq(seq) => one(Test::TcpSeq(*seq)),
        IpfwOption::TcpAck(ack) => one(Test::TcpAck(*ack)),
        IpfwOption::TcpWin(windows) => {
            Group::any(windows.iter().map(|(first, last)| Test::TcpWindow(*first, *last)).collect())
        }
        IpfwOption::IcmpTypes(list) => inet(types(list)),
        IpfwOption::Icmp6Types(list) => Group::all(vec![Test::Family(Family::Inet6), types(list)]),
        IpfwOption::IpTos(set, clear) => inet(Test::Tos { value: *set, mask: set | clear }),
        IpfwOption::IpPrecedence(precedence) => inet(Test::Tos { value: precedence << 5, mask: 0xe0 }),
        IpfwOption::Dscp(points) => {
            Group::any(points.iter().map(|point| Test::Tos { value: point << 2, mask: 0xfc }).collect())
        }
        IpfwOption::IpTtl(ttls) => inet_any(ttls.iter().filter_map(ttl).collect()),
        IpfwOption::IpLen(lengths) => {
            inet_any(lengths.iter().map(|(first, last)| Test::Length(*first, *last)).collect())
        }
        IpfwOption::IpVersion(4) => one(Test::Family(Family::Inet)),
        IpfwOption::IpVersion(6) => one(Test::Family(Family::Inet6)),
        _ => Group::any(Vec::new()),
    }
}

/// IPv4 packets that pass any of the tests.
fn inet_any(tests: Vec<Test>) -> Group {
    Group(vec![vec![Test::Family(Family::Inet)], tests])
}

fn ttl((first, last): &(u16, u16)) -> Option<Test> {
    let first = u8::try_from(*first).ok()?;
    Some(Test::Ttl(first, u8::try_from(*last).unwrap_or(u8::MAX)))
}

/// The interface of the pass, perhaps only in one direction.
fn of_interface(interface: &IpfwInterface, direction: Option<Direction>, names: &RuleNames<'_>) -> Group {
    let set = (*interface != IpfwInterface::Any).then(|| Test::Interface(numbers(interface, names)));
    Group::all(set.into_iter().chain(direction.map(Test::Direction)).collect())
}

fn numbers(interface: &IpfwInterface, names: &RuleNames<'_>) -> crate::rule::InterfaceSet {
    let matching = names.interfaces.0.iter().filter(|known| match interface {
        IpfwInterface::Any => true,
        IpfwInterface::Name(name) => match name.strip_suffix('*') {
            Some(start) => known.name.starts_with(start),
            None => known.name == *name,
        },
        IpfwInterface::Address(address) => known.addresses.iter().any(|(own, _)| *own == (*address).into()),
    });
    matching.map(|known| known.number).collect()
}
