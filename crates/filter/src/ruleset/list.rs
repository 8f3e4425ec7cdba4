use super::matching::{Surroundings, matches};
use crate::classify::{Classifier, Walk};
use crate::packet::Packet;
use crate::packet::protocol::TCP;
use crate::packet::protocol::tcp::PUSH;
use crate::rule::{CompiledRule, LookupKey, RuleAction, Test};

/// So many rules are tried one after the other faster than they are classified.
const FEW: usize = 8;

/// Rules in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct RuleList {
    rules: Vec<CompiledRule>,
    classifier: Option<Classifier>,
    /// Whether a rule that matches only decides: then the rules need not be tried from the first to the last.
    decides_only: bool,
    has_quick: bool,
    /// Before the first rule with this index all whole UDP packets of a flow match the same rules.
    constant: usize,
    /// As `constant` for plain TCP segments.
    constant_segments: usize,
}

impl RuleList {
    /// The list of these rules.
    pub fn new(rules: Vec<CompiledRule>) -> Self {
        let classifier = (rules.len() > FEW).then(|| Classifier::new(&rules));
        let decides = |rule: &CompiledRule| {
            rule.tag == 0 && !matches!(rule.action, RuleAction::Count | RuleAction::StopIfDecided { .. })
        };
        let decides_only = rules.iter().all(decides);
        let has_quick = rules.iter().any(|rule| rule.quick);
        let before = |test: fn(&Test) -> bool| {
            rules.iter().position(|rule| distinguishes_packets(rule, test)).unwrap_or(rules.len())
        };
        let (constant, constant_segments) = (before(is_of_packet), before(is_of_segment));
        RuleList { rules, classifier, decides_only, has_quick, constant, constant_segments }
    }

    /// The rules in order.
    pub fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// Whether no rule has an effect besides deciding.
    pub(super) fn decides_only(&self) -> bool {
        self.decides_only
    }

    /// Whether any rule ends the evaluation.
    pub(super) fn has_quick(&self) -> bool {
        self.has_quick
    }

    /// Whether no rule up to this one distinguishes whole UDP packets, or plain TCP segments, of one flow.
    pub(super) fn is_constant(&self, index: usize, protocol: u8) -> bool {
        index < self.constant(protocol)
    }

    /// Whether no rule at all distinguishes whole UDP packets, or plain TCP segments, of one flow.
    pub(super) fn is_all_constant(&self, protocol: u8) -> bool {
        self.constant(protocol) == self.rules.len()
    }

    fn constant(&self, protocol: u8) -> usize {
        if protocol == TCP { self.constant_segments } else { self.constant }
    }

    /// The bytes by which packets are classified.
    pub fn classifier_bytes(&self) -> usize {
        self.classifier.as_ref().map_or(0, Classifier::bytes)
    }

    /// Prepares to find the rules that match the packet.
    #[inline]
    pub(super) fn search<'a>(&'a self, packet: &Packet, around: Surroundings<'a>) -> RuleSearch<'a> {
        let walk = self.classifier.as_ref().map(|classifier| Walk::new(classifier, packet));
        RuleSearch { rules: &self.rules, walk, around }
    }
}

/// Whether two packets of one flow may fare differently by this rule, if this test says which answers differ.
fn distinguishes_packets(rule: &CompiledRule, differs: fn(&Test) -> bool) -> bool {
    rule.clauses.iter().flat_map(|clause| &clause.0).any(|literal| differs(&literal.test))
}

/// Whether the answer may differ between whole UDP packets of a flow without options. Those about TCP, ICMP, fragments and
/// options are no for each of them, and a tag follows from the rules before.
fn is_of_packet(test: &Test) -> bool {
    match test {
        Test::Direction(_) | Test::Interface(_) | Test::ReceivedOn(_) => false,
        Test::Family(_) | Test::Protocol(_) | Test::Source(_) | Test::Destination(_) => false,
        Test::SourcePort(_) | Test::DestinationPort(_) => false,
        Test::Lookup(key, _) => matches!(key, LookupKey::Dscp(_)),
        Test::TcpFlags { .. } | Test::TcpAnyFlag(_) | Test::TcpWindow(..) => false,
        Test::TcpSeq(_) | Test::TcpAck(_) | Test::IcmpType(_) | Test::IcmpCode(_) => false,
        Test::Fragment(_) | Test::Options | Test::Tagged(_) | Test::TagBits(_) => false,
        Test::Tos { .. } | Test::Ttl(..) | Test::Length(..) | Test::Probability(_) => true,
    }
}

/// Whether the answer may differ between plain TCP segments of a flow, which have `ACK` and perhaps `PUSH`.
fn is_of_segment(test: &Test) -> bool {
    match test {
        Test::TcpFlags { mask, .. } | Test::TcpAnyFlag(mask) => mask & PUSH != 0,
        Test::TcpWindow(..) | Test::TcpSeq(_) | Test::TcpAck(_) => true,
        other => is_of_packet(other),
    }
}

/// Finds the rules that match one packet.
pub(super) struct RuleSearch<'a> {
    rules: &'a [CompiledRule],
    walk: Option<Walk<'a>>,
    around: Surroundings<'a>,
}

impl RuleSearch<'_> {
    /// The first rule from `from` on that matches and is `wanted`.
    #[inline]
    pub fn next(
        &self,
        mut from: usize,
        packet: &Packet,
        wanted: impl Fn(&CompiledRule) -> bool,
    ) -> Option<usize> {
        loop {
            let index = self.walk.as_ref().map_or(Some(from), |walk| walk.next(from))?;
            let rule = self.rules.get(index)?;
            if wanted(rule) && matches(rule, index, packet, &self.around) {
                return Some(index);
            }
            from = index + 1;
        }
    }

    /// The last rule that matches.
    #[inline]
    pub fn last(&self, packet: &Packet) -> Option<usize> {
        let mut before = self.rules.len();
        loop {
            let index = match &self.walk {
                Some(walk) => walk.previous(before)?,
                None => before.checked_sub(1)?,
            };
            if matches(self.rules.get(index)?, index, packet, &self.around) {
                return Some(index);
            }
            before = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, Family};
    use crate::packet::protocol::UDP;
    use crate::packet::{Direction, Pass};
    use crate::rule::{AddressMatch, Clause, Literal, PortRange, Test};
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = Address> {
        let inet = (0_u32..64).prop_map(|bits| Address::inet(bits << 26 | bits));
        prop_oneof![3 => inet, 1 => (0_u128..16).prop_map(|bits| Address(bits << 124 | bits))]
    }

    fn range() -> impl Strategy<Value = AddressMatch> {
        let prefix =
            (address(), 0_u8..=128).prop_map(|(address, length)| AddressMatch::prefix(address, length));
        let ends = (address(), address()).prop_map(|(a, b)| AddressMatch::Range(a.min(b), a.max(b)));
        let mask = (address(), 0_u128..4)
            .prop_map(|(a, mask)| AddressMatch::Mask(Address(a.0 & mask), Address(mask)));
        prop_oneof![4 => prefix, 1 => ends, 1 => mask]
    }

    fn test() -> impl Strategy<Value = Test> {
        let port = (0_u16..6, 0_u16..6).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) });
        prop_oneof![
            4 => range().prop_map(Test::Source),
            4 => range().prop_map(Test::Destination),
            2 => port.clone().prop_map(Test::SourcePort),
            2 => port.prop_map(Test::DestinationPort),
            1 => prop_oneof![Just(TCP), Just(UDP)].prop_map(|number| Test::Protocol([number].into_iter().collect())),
            1 => prop_oneof![Just(Family::Inet), Just(Family::Inet6)].prop_map(Test::Family),
            1 => prop_oneof![Just(Direction::In), Just(Direction::Out)].prop_map(Test::Direction),
            1 => (0_u16..3).prop_map(|number| Test::Interface([number].into_iter().collect())),
            1 => (0_u8..2).prop_map(|value| Test::Tos { value, mask: 1 }),
        ]
    }

    fn rule() -> impl Strategy<Value = CompiledRule> {
        let literal =
            (prop::bool::weighted(0.2), test()).prop_map(|(negated, test)| Literal { negated, test });
        let clause = prop::collection::vec(literal, 1..3).prop_map(Clause);
        let clauses = prop::collection::vec(clause, 0..5);
        (clauses, prop::bool::weighted(0.3)).prop_map(|(clauses, quick)| CompiledRule {
            clauses,
            quick,
            ..CompiledRule::new(RuleAction::Pass)
        })
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let ends = ((address(), 0_u16..7), (address(), 0_u16..7));
        (ends, any::<bool>(), 0_u16..4, any::<bool>(), 0_u8..2).prop_map(
            |((from, to), inward, interface, tcp, tos)| {
                // Both ends of a packet are of one family.
                let to = if from.0.family() == to.0.family() { to } else { (from.0, to.1) };
                let direction = if inward { Direction::In } else { Direction::Out };
                let mut packet = Packet::udp(Pass { direction, interface, received_on: 0 }, from, to);
                packet.protocol = if tcp { TCP } else { packet.protocol };
                packet.tos = tos;
                packet
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_search_finds_what_trying_all_rules_finds(
            rules in prop::collection::vec(rule(), 9..140),
            packets in prop::collection::vec(packet(), 1..20),
        ) {
            let list = RuleList::new(rules);
            let around = || Surroundings { tables: &[], draw: 0 };
            for packet in packets {
                let all = || list.rules.iter().enumerate();
                let matching: Vec<_> =
                    all().filter(|(index, rule)| matches(rule, *index, &packet, &around())).map(|(index, _)| index).collect();
                let search = list.search(&packet, around());
                let mut found = Vec::new();
                while let Some(next) = search.next(found.last().map_or(0, |last| last + 1), &packet, |_| true) {
                    found.push(next);
                }
                prop_assert_eq!(&found, &matching);
                prop_assert_eq!(search.last(&packet), matching.last().copied());
                let quick = matching.iter().copied().find(|index| list.rules[*index].quick);
                prop_assert_eq!(search.next(0, &packet, |rule| rule.quick), quick);
            }
        }
    }
}
