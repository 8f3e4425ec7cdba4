use super::intervals::IntervalSet;
use crate::address::{Address, Family};
use crate::packet::Packet;
use crate::rule::{AddressMatch, Clause, CompiledRule, InterfaceSet, PortRange, Test};

/// A property of packets that rules ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    /// The direction, and below it the interface.
    Pass,
    /// The family, and below it the protocol.
    Protocol,
    Source,
    Destination,
    SourcePort,
    DestinationPort,
}

/// The last number of IPv4's part of the addresses, and the first.
const INET: (u128, u128) = (Address::inet(0).0, Address::inet(u32::MAX).0);

impl Dimension {
    pub const COUNT: usize = 6;
    /// First those in which most rules of usual rule sets differ: they leave the fewest candidates to the others.
    pub const MOST_TELLING_FIRST: [Dimension; Self::COUNT] = [
        Dimension::DestinationPort,
        Dimension::Destination,
        Dimension::Source,
        Dimension::Protocol,
        Dimension::Pass,
        Dimension::SourcePort,
    ];

    /// The largest value.
    pub fn most(self) -> u128 {
        match self {
            Dimension::Pass => (1 << 17) - 1,
            Dimension::Protocol => (1 << 9) - 1,
            Dimension::Source | Dimension::Destination => u128::MAX,
            Dimension::SourcePort | Dimension::DestinationPort => u16::MAX.into(),
        }
    }

    pub fn is_address(self) -> bool {
        matches!(self, Dimension::Source | Dimension::Destination)
    }

    /// The value of a packet; addresses are looked up by themselves, and a packet without ports has no value of ports.
    #[inline(always)]
    pub fn small_value(self, packet: &Packet) -> Option<u32> {
        match self {
            Dimension::Pass => Some(u32::from(packet.pass.interface) | (packet.pass.direction as u32) << 16),
            Dimension::Protocol => Some(u32::from(packet.protocol) | (packet.family as u32) << 8),
            Dimension::SourcePort => packet.shows_ports().then_some(packet.source_port.into()),
            Dimension::DestinationPort => packet.shows_ports().then_some(packet.destination_port.into()),
            Dimension::Source | Dimension::Destination => None,
        }
    }

    /// The values that a rule accepts; `None` if it accepts all, or so many that knowing them saves little.
    pub fn accepted(self, rule: &CompiledRule) -> Option<IntervalSet> {
        let sets = rule.clauses.iter().filter_map(|clause| self.accepted_by(clause));
        let all = sets.reduce(|one, other| one.intersection(&other))?;
        (!self.is_most(&all)).then_some(all)
    }

    /// Whether a set holds at least half of the values (of addresses: of a family).
    fn is_most(self, set: &IntervalSet) -> bool {
        let half_of = |first: u128, last: u128| set.count_within(first, last) > (last - first) / 2;
        if self.is_address() {
            half_of(INET.0, INET.1) || half_of(0, u128::MAX)
        } else {
            half_of(0, self.most())
        }
    }

    fn accepted_by(self, clause: &Clause) -> Option<IntervalSet> {
        let mut ranges = Vec::new();
        for literal in &clause.0 {
            let (dimension, values) = values(&literal.test)?;
            if dimension != self {
                return None;
            }
            let set = IntervalSet::new(values);
            ranges.extend(if literal.negated { set.complement(self.most()).0 } else { set.0 });
        }
        Some(IntervalSet::new(ranges))
    }
}

/// The dimension that a test asks about and the values that pass it, if they are known.
fn values(test: &Test) -> Option<(Dimension, Vec<(u128, u128)>)> {
    Some(match test {
        Test::Direction(direction) => (Dimension::Pass, vec![upper(*direction as u128, 16)]),
        Test::Interface(set) => (Dimension::Pass, interfaces(set)),
        Test::Family(family) => (Dimension::Protocol, vec![upper(*family as u128, 8)]),
        Test::Protocol(set) => {
            let both = |number: u8| {
                [Family::Inet, Family::Inet6].map(|family| (family as u128) << 8 | u128::from(number))
            };
            let numbers = (0..=u8::MAX).filter(|number| set.contains(*number)).flat_map(both);
            (Dimension::Protocol, numbers.map(|number| (number, number)).collect())
        }
        Test::Source(AddressMatch::Range(first, last)) => (Dimension::Source, vec![(first.0, last.0)]),
        Test::Destination(AddressMatch::Range(first, last)) => {
            (Dimension::Destination, vec![(first.0, last.0)])
        }
        Test::SourcePort(ports) => (Dimension::SourcePort, vec![ends(*ports)]),
        Test::DestinationPort(ports) => (Dimension::DestinationPort, vec![ends(*ports)]),
        _ => return None,
    })
}

/// The values with these upper bits.
fn upper(bits: u128, lower: u32) -> (u128, u128) {
    (bits << lower, (bits << lower) | ((1 << lower) - 1))
}

/// The interfaces in both directions.
fn interfaces(set: &InterfaceSet) -> Vec<(u128, u128)> {
    let both = |number: &u16| [u128::from(*number), u128::from(*number) | 1 << 16];
    set.numbers().iter().flat_map(both).map(|value| (value, value)).collect()
}

fn ends(ports: PortRange) -> (u128, u128) {
    (ports.first.into(), ports.last.into())
}
