//! Rules of policy routing: in which table a packet is looked up, by its addresses, protocol and ports.
//!
//! What a rule says about anything else is decided when its list is made: each interface and family has its
//! own. Most have none, and the loop looks up their packets without asking.

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::sync::Arc;

use fullview_table::Family;

/// The rules of a list at most.
pub const MOST_RULES: usize = 32;

/// A rule, which selects packets by their addresses, protocol and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// The number that users know it by; several rules may have the same.
    pub priority: u32,
    /// The sources of its packets; `None` for all.
    pub source: Option<RulePrefix>,
    /// The destinations of its packets; `None` for all.
    pub destination: Option<RulePrefix>,
    /// What else its packets have.
    pub transport: RuleTransport,
    /// Whether it selects the other packets instead.
    pub inverted: bool,
    /// What it does with them.
    pub action: PolicyAction,
}

/// The addresses that a rule selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RulePrefix {
    /// An address in the prefix.
    pub address: IpAddr,
    /// The bits that all addresses share.
    pub len: u8,
}

impl Display for RulePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// The transport protocol and the ports that a rule selects; `None` for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleTransport {
    /// The number of the protocol.
    pub protocol: Option<u8>,
    /// Its source ports. Fragments have no ports, the first one included.
    pub source: Option<RulePorts>,
    /// Its destination ports.
    pub destination: Option<RulePorts>,
}

/// A range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RulePorts {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

/// The transport protocol and the ports of a packet, as far as rules can be applied to them as the kernel applies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketTransport {
    pub protocol: u8,
    pub ports: PacketPorts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketPorts {
    /// Source and destination.
    Known(u16, u16),
    /// It is a fragment.
    Absent,
    /// The kernel may find some.
    Unknown,
}

impl RuleTransport {
    /// Whether any packet is one of these.
    pub fn is_any(&self) -> bool {
        *self == RuleTransport::default()
    }

    /// Whether a packet is one of these; `None` if only the kernel can tell.
    fn holds(&self, packet: Option<PacketTransport>) -> Option<bool> {
        if self.is_any() {
            return Some(true);
        }
        let PacketTransport { protocol, ports } = packet?;
        if self.protocol.is_some_and(|wanted| wanted != protocol) {
            return Some(false);
        }
        match (self.source.is_none() && self.destination.is_none(), ports) {
            (true, _) => Some(true),
            (false, PacketPorts::Absent) => Some(false),
            (false, PacketPorts::Unknown) => None,
            (false, PacketPorts::Known(source, destination)) => {
                let holds = |ports: Option<RulePorts>, port| {
                    ports.is_none_or(|ports| (ports.first..=ports.last).contains(&port))
                };
                Some(holds(self.source, source) && holds(self.destination, destination))
            }
        }
    }
}

/// What a rule does with the packets that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyAction {
    /// They are looked up in this table, by its index in the view. Those without a route there meet the next rule.
    LookUp(u16),
    /// As [`Self::LookUp`], except that default routes do not count: packets for which the table has no other route meet the
    /// next rule (`suppress_prefixlength 0`).
    LookUpSpecific(u16),
    /// They meet the rule at this place of the list next, which is a later one. There may be none.
    SkipTo(u8),
    /// The slow path decides.
    Punt,
}

/// The rules that the packets of an interface meet, in order. Without a rule they are looked up in the interface's table. A
/// packet for which no rule decides has no route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceRules {
    /// Those for IPv4.
    pub inet: Arc<[PolicyRule]>,
    /// Those for IPv6.
    pub inet6: Arc<[PolicyRule]>,
}

impl InterfaceRules {
    /// The rules of one family.
    pub fn of(&self, family: Family) -> &[PolicyRule] {
        match family {
            Family::Inet => &self.inet,
            Family::Inet6 => &self.inet6,
        }
    }
}

/// Why a list of rules is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A longer list than [`MOST_RULES`].
    #[error("{0} rules are too many: a list has at most {MOST_RULES}")]
    TooMany(usize),
    /// A table that is missing.
    #[error("rule {priority} looks up in table {table}, but there are only {tables} tables, numbered from 0")]
    Table {
        /// The rule's number.
        priority: u32,
        /// Its table.
        table: u16,
        /// The number of tables.
        tables: usize,
    },
    /// A rule that skips to itself or to an earlier one.
    #[error("rule {priority} skips to place {to} of the list, which does not come after it")]
    Backwards {
        /// The rule's number.
        priority: u32,
        /// The place it skips to.
        to: u8,
    },
    /// A prefix of the other family, or longer than an address.
    #[error("rule {priority}: {prefix} is no prefix of the family of its list")]
    Prefix {
        /// The rule's number.
        priority: u32,
        /// The prefix.
        prefix: RulePrefix,
    },
}

/// A rule as the loop and the program in the kernel use it. IPv4 addresses are the low 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompiledRule {
    pub source: MaskedAddress,
    pub destination: MaskedAddress,
    pub transport: RuleTransport,
    pub inverted: bool,
    pub action: PolicyAction,
}

/// Bits of an address that have to agree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaskedAddress {
    pub bits: u128,
    pub mask: u128,
}

impl CompiledRule {
    /// Whether it selects a packet; `None` if only the kernel can tell.
    pub fn selects(
        &self,
        source: u128,
        destination: u128,
        transport: impl FnOnce() -> Option<PacketTransport>,
    ) -> Option<bool> {
        let differs = (source ^ self.source.bits) & self.source.mask
            | (destination ^ self.destination.bits) & self.destination.mask;
        let holds = differs == 0 && (self.transport.is_any() || self.transport.holds(transport())?);
        Some(holds != self.inverted)
    }
}

/// Compiles the list of a family, for a view with so many tables.
pub(crate) fn compile(
    rules: &[PolicyRule],
    family: Family,
    tables: usize,
) -> Result<Box<[CompiledRule]>, RuleError> {
    if rules.len() > MOST_RULES {
        return Err(RuleError::TooMany(rules.len()));
    }
    rules.iter().enumerate().map(|(place, rule)| compile_one(rule, place, family, tables)).collect()
}

fn compile_one(
    rule: &PolicyRule,
    place: usize,
    family: Family,
    tables: usize,
) -> Result<CompiledRule, RuleError> {
    let PolicyRule { priority, source, destination, transport, inverted, action } = *rule;
    match action {
        PolicyAction::LookUp(table) | PolicyAction::LookUpSpecific(table) if usize::from(table) >= tables => {
            return Err(RuleError::Table { priority, table, tables });
        }
        PolicyAction::SkipTo(to) if usize::from(to) <= place => {
            return Err(RuleError::Backwards { priority, to });
        }
        _ => {}
    }
    let masked = |prefix: Option<RulePrefix>| match prefix {
        None => Ok(MaskedAddress::default()),
        Some(prefix) => masked(prefix, family).ok_or(RuleError::Prefix { priority, prefix }),
    };
    let (source, destination) = (masked(source)?, masked(destination)?);
    Ok(CompiledRule { source, destination, transport, inverted, action })
}

fn masked(RulePrefix { address, len }: RulePrefix, family: Family) -> Option<MaskedAddress> {
    let (bits, width) = match (address, family) {
        (IpAddr::V4(ip), Family::Inet) => (u128::from(ip.to_bits()), u32::BITS),
        (IpAddr::V6(ip), Family::Inet6) => (ip.to_bits(), u128::BITS),
        _ => return None,
    };
    let free = width.checked_sub(len.into())?;
    let all = u128::MAX >> (u128::BITS - width);
    let mask = all & u128::MAX.checked_shl(free).unwrap_or(0);
    Some(MaskedAddress { bits: bits & mask, mask })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Option<RulePrefix> {
        let (address, len) = text.split_once('/').unwrap();
        Some(RulePrefix { address: address.parse().unwrap(), len: len.parse().unwrap() })
    }

    fn rule(source: Option<RulePrefix>, destination: Option<RulePrefix>) -> PolicyRule {
        let (transport, action) = (RuleTransport::default(), PolicyAction::LookUp(0));
        PolicyRule { priority: 7, source, destination, transport, inverted: false, action }
    }

    /// Whether a rule selects a packet, and whether it does if it is inverted.
    fn selects(rule: PolicyRule, [source, destination]: [&str; 2]) -> [bool; 2] {
        let bits = |text: &str| match text.parse().unwrap() {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()), Family::Inet),
            IpAddr::V6(ip) => (ip.to_bits(), Family::Inet6),
        };
        let ((source, family), (destination, _)) = (bits(source), bits(destination));
        [false, true].map(|inverted| {
            let compiled = compile(&[PolicyRule { inverted, ..rule }], family, 1).unwrap();
            compiled[0].selects(source, destination, || None).unwrap()
        })
    }

    #[test]
    fn rules_select_by_both_addresses() {
        let packet = ["10.1.2.3", "192.0.2.1"];
        let [yes, no] = [[true, false], [false, true]];
        assert_eq!(selects(rule(None, None), packet), yes);
        assert_eq!(selects(rule(prefix("10.1.0.0/16"), None), packet), yes);
        assert_eq!(selects(rule(prefix("10.2.0.0/16"), None), packet), no);
        assert_eq!(selects(rule(None, prefix("192.0.2.1/32")), packet), yes);
        assert_eq!(selects(rule(prefix("10.1.0.0/16"), prefix("192.0.2.0/32")), packet), no);
        assert_eq!(selects(rule(prefix("0.0.0.0/0"), None), packet), yes);
        let packet = ["2001:db8::1", "2001:db8:1::1"];
        assert_eq!(selects(rule(prefix("2001:db8::/48"), prefix("2001:db8:1::/48")), packet), yes);
        assert_eq!(selects(rule(prefix("2001:db8::2/127"), None), packet), no);
        assert_eq!(selects(rule(prefix("::/0"), None), packet), yes);
    }

    #[test]
    fn rules_select_by_protocol_and_ports() {
        let ports = |first, last| Some(RulePorts { first, last });
        let udp = RuleTransport { protocol: Some(17), ..RuleTransport::default() };
        let from = RuleTransport { source: ports(1000, 2000), ..udp };
        let to = RuleTransport { destination: ports(53, 53), ..RuleTransport::default() };
        let packet = |protocol, ports| Some(PacketTransport { protocol, ports });
        let known = |protocol, source| packet(protocol, PacketPorts::Known(source, 53));
        let selected = |packet| [udp, from, to].map(|transport| transport.holds(packet));
        assert_eq!(selected(known(17, 1000)), [Some(true); 3]);
        assert_eq!(selected(known(17, 2001)), [Some(true), Some(false), Some(true)]);
        assert_eq!(selected(known(6, 1500)), [Some(false), Some(false), Some(true)]);
        assert_eq!(selected(packet(17, PacketPorts::Absent)), [Some(true), Some(false), Some(false)]);
        assert_eq!(selected(packet(17, PacketPorts::Unknown)), [Some(true), None, None]);
        assert_eq!(selected(packet(50, PacketPorts::Unknown)), [Some(false), Some(false), None]);
        assert_eq!(selected(None), [None; 3]);
        let inverted = PolicyRule { transport: from, inverted: true, ..rule(None, prefix("192.0.2.0/24")) };
        let compiled = compile(&[inverted], Family::Inet, 1).unwrap();
        let [inside, outside] = [0xc000_0201, 0xc000_0301].map(|to| compiled[0].selects(0, to, || None));
        assert_eq!([inside, outside], [None, Some(true)]);
    }

    #[test]
    fn impossible_lists_are_refused() {
        let refused = |rules: &[PolicyRule]| compile(rules, Family::Inet, 2).unwrap_err().to_string();
        let plain = rule(None, None);
        assert!(refused(&[plain; MOST_RULES + 1]).contains("33 rules"));
        let action = PolicyAction::LookUp(2);
        assert!(refused(&[PolicyRule { action, ..plain }]).contains("only 2 tables"));
        let action = PolicyAction::SkipTo(1);
        assert!(refused(&[plain, PolicyRule { action, ..plain }]).contains("place 1"));
        for wrong in ["2001:db8::/32", "10.0.0.0/33"] {
            assert!(refused(&[rule(prefix(wrong), None)]).contains(wrong));
            assert!(refused(&[rule(None, prefix(wrong))]).contains(wrong));
        }
    }
}
