//! Whether a rule matches a packet.

use std::sync::Arc;

use crate::address::Address;
use crate::address_table::AddressTable;
use crate::packet::{Fragment, Packet};
use crate::rule::{AddressMatch, Clause, CompiledRule, FragmentTest, LookupKey, PortRange, TableId, Test};

/// What tests depend on besides the packet. Tests get a reference: to read it in larger pieces than those that it was just written in
/// would have to wait for the cache.
pub(super) struct Surroundings<'a> {
    pub tables: &'a [Arc<AddressTable>],
    /// A random number for this packet, which gives each rule with a probability another one.
    pub draw: u64,
}

/// Whether each clause of the rule with this index matches.
pub(super) fn matches(rule: &CompiledRule, index: usize, packet: &Packet, around: &Surroundings<'_>) -> bool {
    rule.clauses.iter().all(|clause| holds(clause, index, packet, around))
}

/// The first clause that does not match.
pub(super) fn mismatch<'r>(
    rule: &'r CompiledRule,
    index: usize,
    packet: &Packet,
    around: &Surroundings<'_>,
) -> Option<&'r Clause> {
    rule.clauses.iter().find(|clause| !holds(clause, index, packet, around))
}

#[inline]
fn holds(clause: &Clause, index: usize, packet: &Packet, around: &Surroundings<'_>) -> bool {
    clause.0.iter().any(|literal| passes(&literal.test, index, packet, around) != literal.negated)
}

fn passes(test: &Test, index: usize, packet: &Packet, around: &Surroundings<'_>) -> bool {
    match test {
        Test::Direction(direction) => packet.pass.direction == *direction,
        Test::Interface(set) => set.contains(packet.pass.interface),
        Test::ReceivedOn(set) => set.contains(packet.pass.received_on),
        Test::Family(family) => packet.family == *family,
        Test::Protocol(set) => set.contains(packet.protocol),
        Test::Source(addresses) => has(addresses, packet.source, around.tables),
        Test::Destination(addresses) => has(addresses, packet.destination, around.tables),
        Test::SourcePort(ports) => has_port(packet, *ports, packet.source_port),
        Test::DestinationPort(ports) => has_port(packet, *ports, packet.destination_port),
        Test::Lookup(key, id) => is_looked_up(*key, packet, around.tables.get(usize::from(id.0))),
        Test::Tos { value, mask } => packet.tos & mask == *value,
        Test::Ttl(first, last) => (*first..=*last).contains(&packet.ttl),
        Test::Length(first, last) => (*first..=*last).contains(&packet.length),
        Test::Fragment(FragmentTest::Any) => packet.is_fragment(),
        Test::Fragment(FragmentTest::Later) => matches!(packet.fragment, Fragment::Later { .. }),
        Test::Options => packet.has_options,
        Test::Tagged(tag) => packet.tag == *tag,
        Test::TagBits(tags) => packet.tag & tags != 0,
        Test::Probability(threshold) => draw(around.draw, index) < *threshold,
        _ => passes_transport(test, packet),
    }
}

fn passes_transport(test: &Test, packet: &Packet) -> bool {
    match test {
        Test::TcpFlags { set, mask } => packet.tcp().is_some_and(|tcp| tcp.flags & mask == *set),
        Test::TcpAnyFlag(flags) => packet.tcp().is_some_and(|tcp| tcp.flags & flags != 0),
        Test::TcpWindow(first, last) => {
            packet.tcp().is_some_and(|tcp| (*first..=*last).contains(&tcp.window))
        }
        Test::TcpSeq(seq) => packet.tcp().is_some_and(|tcp| tcp.seq == *seq),
        Test::TcpAck(ack) => packet.tcp().is_some_and(|tcp| tcp.ack == *ack),
        Test::IcmpType(kinds) => packet.icmp().is_some_and(|icmp| kinds.contains(icmp.kind)),
        Test::IcmpCode(code) => packet.icmp().is_some_and(|icmp| icmp.code == *code),
        _ => false,
    }
}

fn has(addresses: &AddressMatch, address: Address, tables: &[Arc<AddressTable>]) -> bool {
    let table = |id: &TableId| tables.get(usize::from(id.0));
    match addresses {
        AddressMatch::Range(first, last) => *first <= address && address <= *last,
        AddressMatch::Mask(value, mask) => address.0 & mask.0 == value.0,
        AddressMatch::Table(id) => table(id).is_some_and(|table| table.contains(address)),
        AddressMatch::TableValue(id, value) => table(id)
            .and_then(|table| table.lookup(address))
            .is_some_and(|entry| !entry.negated && entry.value == *value),
    }
}

fn is_looked_up(key: LookupKey, packet: &Packet, table: Option<&Arc<AddressTable>>) -> bool {
    let found = key.of(packet).zip(table);
    found.is_some_and(|(address, table)| table.contains_in(key.family(), address))
}

#[inline]
fn has_port(packet: &Packet, ports: PortRange, port: u16) -> bool {
    ports.contains(port) && packet.shows_ports()
}

/// A random number for one rule.
#[inline]
fn draw(packet: u64, rule: usize) -> u32 {
    ((packet ^ rule as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
}
