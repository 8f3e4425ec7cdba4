//! New addresses and ports for new flows.

use super::evaluation::Evaluation;
use crate::address::Address;
use crate::packet::protocol::has_ports;
use crate::packet::{Direction, Packet, Transport};
use crate::rule::{AddressPool, PoolOrder, PortChoice, PortRange, RuleAction, Side, Translation};
use crate::state::FlowKey;
use crate::verdict::{DropReason, Rewrite};

/// A translation that a rule has chosen.
pub(super) struct Chosen {
    pub rewrite: Rewrite,
    /// The packet passes without filter rules.
    pub passes: bool,
}

/// How many ports are tried. If nine in ten are taken, all tries fail once in 800 flows.
const TRIES: u32 = 64;

/// Translates the packet by the first rule that matches, if one does.
pub(super) fn by_rules(evaluation: &mut Evaluation<'_>) -> Result<Option<Chosen>, DropReason> {
    let set = evaluation.set;
    if set.translations().is_empty() {
        return Ok(None);
    }
    let (around, wanted) = (evaluation.surroundings(), side_of(evaluation.packet.pass.direction));
    let search = set.translations.search(evaluation.packet, around);
    let mut from = 0;
    while let Some(index) = search.next(from, evaluation.packet, |_| true) {
        let rule = &set.translations()[index];
        match &rule.action {
            RuleAction::Translate(to) if to.side == wanted => {
                evaluation.count((set.rules().len() + index) as u32);
                if rule.tag != 0 {
                    evaluation.packet.tag = rule.tag;
                }
                return choose(evaluation, to).map(Some);
            }
            RuleAction::NoTranslate { next: None } => return Ok(None),
            RuleAction::NoTranslate { next: Some(next) } => from = (*next as usize).max(index + 1),
            _ => from = index + 1,
        }
    }
    Ok(None)
}

/// Which end of a new flow is translated in a pass.
pub(super) fn side_of(direction: Direction) -> Side {
    match direction {
        Direction::In => Side::Destination,
        Direction::Out => Side::Source,
    }
}

/// Chooses an address and a free port, and gives both to the packet, so that filter rules see them.
pub(super) fn choose(evaluation: &mut Evaluation<'_>, to: &Translation) -> Result<Chosen, DropReason> {
    let original = *evaluation.packet;
    let tries = if has_choice(to, &original) { TRIES } else { 1 };
    for tried in 0..tries {
        let random = evaluation.worker.random();
        let address = address(&to.pool, &original, to.side, random).ok_or(DropReason::NoPort)?;
        let port = port(of_try(to.ports, tried), &original, to.side, random >> 32);
        apply(evaluation.packet, to.side, address, port);
        let answers = FlowKey::of(evaluation.packet).reversed();
        if !evaluation.worker.states.is_taken(&answers, original.pass.direction.opposite()) {
            let rewrite = Rewrite { side: to.side, address, port, quoted: false };
            return Ok(Chosen { rewrite, passes: to.pass });
        }
    }
    *evaluation.packet = original;
    Err(DropReason::NoPort)
}

/// Whether another try may lead to another address or port.
fn has_choice(to: &Translation, packet: &Packet) -> bool {
    let ports = match to.ports {
        PortChoice::Free(_) | PortChoice::KeepOrFree(_) => has_port(packet),
        PortChoice::Keep | PortChoice::Shift { .. } | PortChoice::Fixed(_) => false,
    };
    let addresses = matches!(to.pool.order, PoolOrder::RoundRobin | PoolOrder::Random);
    ports || addresses && count(&to.pool, packet) > 1
}

/// How the port is chosen in a try: the original one stands for itself once.
fn of_try(ports: PortChoice, tried: u32) -> PortChoice {
    match ports {
        PortChoice::KeepOrFree(_) if tried == 0 => PortChoice::Keep,
        PortChoice::KeepOrFree(range) => PortChoice::Free(range),
        others => others,
    }
}

/// Whether the packet shows a port, or an identifier that takes its place.
fn has_port(packet: &Packet) -> bool {
    has_ports(packet.protocol) || packet.icmp().is_some_and(|message| message.is_query)
}

/// The port and address of an end.
fn end(packet: &Packet, side: Side) -> (Address, u16) {
    let (source, destination) = packet.flow_ports();
    match side {
        Side::Source => (packet.source, source),
        Side::Destination => (packet.destination, destination),
    }
}

fn port(choice: PortChoice, packet: &Packet, side: Side, random: u64) -> u16 {
    let (_, original) = end(packet, side);
    if !has_ports(packet.protocol) && !matches!(packet.transport, Transport::Icmp(_)) {
        return 0;
    }
    match choice {
        PortChoice::Keep => original,
        PortChoice::Free(range) | PortChoice::KeepOrFree(range) => nth(range, random),
        PortChoice::Shift { .. } | PortChoice::Fixed(_) if !has_ports(packet.protocol) => original,
        PortChoice::Shift { from, to } => nth(to, original.wrapping_sub(from).into()),
        PortChoice::Fixed(port) => port,
    }
}

/// The port of a range with this number from zero; behind the last one they start again.
fn nth(range: PortRange, number: u64) -> u16 {
    let count = u64::from(range.last.saturating_sub(range.first)) + 1;
    range.first + (number % count) as u16
}

fn address(pool: &AddressPool, packet: &Packet, side: Side, random: u64) -> Option<Address> {
    let count = count(pool, packet);
    if count == 0 {
        return None;
    }
    let (original, _) = end(packet, side);
    let chosen = match pool.order {
        PoolOrder::First => 0,
        PoolOrder::RoundRobin | PoolOrder::Random => u128::from(random) % count,
        PoolOrder::SourceHash(key) => keyed(packet.source, key) % count,
        PoolOrder::Bitmask => original.0 % count,
    };
    let mut left = chosen;
    for range in of_family(pool, packet) {
        if left < size(range) {
            return Some(Address(range.0.0 + left));
        }
        left -= size(range);
    }
    None
}

/// The ranges of the packet's family.
fn of_family<'a>(pool: &'a AddressPool, packet: &Packet) -> impl Iterator<Item = &'a (Address, Address)> {
    let family = packet.family;
    pool.ranges.iter().filter(move |range| range.0.family() == family)
}

/// How many addresses of the packet's family the pool has.
fn count(pool: &AddressPool, packet: &Packet) -> u128 {
    of_family(pool, packet).map(size).fold(0, u128::saturating_add)
}

fn size(range: &(Address, Address)) -> u128 {
    range.1.0.saturating_sub(range.0.0).saturating_add(1)
}

fn keyed(source: Address, key: u64) -> u128 {
    let folded = source.0 as u64 ^ (source.0 >> 64) as u64 ^ key;
    u128::from(folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32)
}

fn apply(packet: &mut Packet, side: Side, address: Address, port: u16) {
    match side {
        Side::Source => packet.source = address,
        Side::Destination => packet.destination = address,
    }
    match (&mut packet.transport, side) {
        (Transport::Icmp(message), _) if message.is_query => message.id = port,
        (Transport::Icmp(_), _) => {}
        (_, Side::Source) => packet.source_port = port,
        (_, Side::Destination) => packet.destination_port = port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Family;

    #[test]
    fn an_address_of_the_packets_family_is_chosen() {
        let pass = crate::packet::Pass { direction: Direction::Out, interface: 1, received_on: 2 };
        let ends = (Address::inet(1), 1000);
        let packet = Packet::udp(pass, ends, (Address::inet(9), 53));
        let pool = AddressPool {
            ranges: vec![(Address(5), Address(6)), (Address::inet(7), Address::inet(8))],
            order: PoolOrder::Random,
        };
        for random in 0..10 {
            let chosen = address(&pool, &packet, Side::Source, random).unwrap();
            assert_eq!(chosen.family(), Family::Inet);
        }
    }
    #[test]
    fn another_try_needs_another_address_or_port() {
        let pass = crate::packet::Pass { direction: Direction::Out, interface: 1, received_on: 2 };
        let packet = Packet::udp(pass, (Address::inet(1), 1000), (Address::inet(9), 53));
        let (one, two) = ((Address::inet(7), Address::inet(7)), (Address::inet(7), Address::inet(8)));
        let free = PortChoice::KeepOrFree(PortRange { first: 1, last: 2 });
        for (range, ports, protocol, expected) in [
            (one, PortChoice::Keep, packet.protocol, false),
            (two, PortChoice::Keep, packet.protocol, true),
            (one, free, packet.protocol, true),
            (one, free, 47, false),
        ] {
            let pool = AddressPool { ranges: vec![range], order: PoolOrder::RoundRobin };
            let to = Translation { side: Side::Source, pool, ports, pass: true };
            let packet = Packet { protocol, ..packet };
            assert_eq!(has_choice(&to, &packet), expected, "{to:?} {protocol}");
        }
    }
}
