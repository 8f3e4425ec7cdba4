//! The configuration of the program besides the tables: interfaces, next hops, groups.

use std::collections::BTreeMap;
use std::iter;

use fullview_table::NextHop;

use super::error::EngineError;
use super::layout::{COUNTED, HOP, HOPS, PORT, PORT_BITS, PORTS, SLOTS, VRFS};
use super::rules::{RuleMemory, XdpRules};
use super::words::{half_words, halves_of, pairs, word};
use crate::flow_hash::FlowHash;
use crate::interface::SourceCheck;
use crate::program_verdict::XdpReason;
use crate::wire::ethernet::Mac;

/// Keys of the map of devices, by the device's index in the kernel. 0 is no key.
pub(super) type DevmapKeys = BTreeMap<u32, u16>;

/// An interface whose packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpInterface {
    /// The index of its counters.
    pub number: u16,
    /// The device's index in the kernel.
    pub ifindex: u32,
    /// The VLAN, 0 for untagged frames.
    pub vlan: u16,
    /// Its MAC address; frames to other addresses are passed.
    pub mac: Mac,
    /// Whether its IPv4 packets are forwarded.
    pub inet: bool,
    /// Whether its IPv6 packets are forwarded.
    pub inet6: bool,
    /// The table it uses; 0 is the main table.
    pub table: u16,
    /// How sources of forwarded packets are checked; packets that fail are dropped.
    pub source_check: SourceCheck,
}

/// A next hop as the XDP program uses it, compiled from an [`Adjacency`](crate::adjacency::Adjacency) or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XdpNextHop {
    /// Packets are sent to a neighbour.
    Neighbor {
        /// The number of the egress interface.
        interface: u16,
        /// The device's index in the kernel.
        ifindex: u32,
        /// The VLAN; 0 for untagged frames.
        vlan: u16,
        /// The MAC address of the device.
        source: Mac,
        /// The MAC address of the neighbour.
        destination: Mac,
        /// The MTU for IPv4; not 0.
        mtu: u16,
        /// The MTU for IPv6; not 0.
        mtu6: u16,
    },
    /// The flow hash picks one of these next hops; their number is a power of two, and none is a group.
    Group(Vec<NextHop>),
    /// The MAC address is not known, or the link is down; packets are passed to the kernel.
    Unresolved {
        /// The number of the egress interface.
        interface: u16,
    },
    /// A neighbour at an interface whose driver takes no frames from XDP programs: the program sends from tcx only.
    NoRedirect(Box<XdpNextHop>),
    /// A neighbour at an interface whose driver takes no frames in several buffers from XDP programs.
    NoMultiBuffer(Box<XdpNextHop>),
    /// Packets are passed to the kernel.
    Pass(XdpReason),
    /// Packets are dropped.
    Blackhole,
}

/// Flags of an interface in the program.
const RULES_INET: u16 = 16;
const RULES_INET6: u16 = 32;
/// The table is above the flags.
const TABLE_SHIFT: u32 = 8;

/// A flag beside the number of the egress interface.
const OF_DEFAULT_ROUTE: u16 = 1 << 15;

/// The word of `struct hop` with the reason and the interface.
const REASON_WORD: usize = 5;

/// The configuration of the program besides the tables.
#[derive(Clone, Debug, Default)]
pub struct XdpConfig {
    /// Interfaces whose packets are forwarded; frames of other interfaces are passed.
    pub interfaces: Vec<XdpInterface>,
    /// Next hops in any order; packets with other next hops are passed.
    pub next_hops: Vec<(NextHop, XdpNextHop)>,
    /// Those of the next hops that only default routes have.
    pub of_default_routes: Vec<NextHop>,
    /// Rules of policy routing, of the interfaces that have any.
    pub rules: Vec<XdpRules>,
    /// The flow hash that picks the member of a group.
    pub flow_hash: FlowHash,
}

/// A configuration in the program's memory layout.
#[derive(Default)]
pub(super) struct CompiledConfig {
    pub hops: Vec<u32>,
    pub slots: Vec<u32>,
    pub ports: IngressTable,
    pub rules: RuleMemory,
    pub flow_hash: FlowHash,
}

impl CompiledConfig {
    /// Compiles a configuration; the program sends to devices without a key by their index.
    pub fn new(config: &XdpConfig, keys: &DevmapKeys) -> Result<CompiledConfig, EngineError> {
        let count = config.next_hops.iter().map(|(hop, _)| hop.index() + 1).max().unwrap_or(1);
        let hops = no_neighbor(XdpReason::NoNeighbor).repeat(count.min(HOPS));
        let mut compiled = CompiledConfig { hops, ..CompiledConfig::default() };
        // The next hop of no route.
        compiled.set(NextHop::NONE, no_neighbor(XdpReason::NoRoute));
        let mut slots = Vec::new();
        for (hop, next_hop) in &config.next_hops {
            next_hop.check(*hop)?;
            compiled.set(*hop, next_hop.words(&mut slots, keys));
        }
        config.of_default_routes.iter().for_each(|hop| compiled.mark_default(*hop));
        fits("slots of groups and their members", slots.len(), SLOTS)?;
        compiled.slots = pairs(&slots);
        compiled.ports = IngressTable::new(&config.interfaces, &config.rules)?;
        compiled.rules = RuleMemory::new(&config.rules)?;
        compiled.flow_hash = config.flow_hash;
        Ok(compiled)
    }

    fn set(&mut self, hop: NextHop, words: [u32; HOP]) {
        self.hops[hop.index() * HOP..][..HOP].copy_from_slice(&words);
    }

    /// A next hop without configuration is no neighbour in any case.
    fn mark_default(&mut self, hop: NextHop) {
        if let Some(word) = self.hops.get_mut(hop.index() * HOP + REASON_WORD) {
            *word |= half_words(0, OF_DEFAULT_ROUTE);
        }
    }
}

impl XdpNextHop {
    /// The words of `struct hop`; the slots of a group are appended to `slots`.
    fn words(&self, slots: &mut Vec<u16>, keys: &DevmapKeys) -> [u32; HOP] {
        match self {
            XdpNextHop::Pass(reason) => no_neighbor(*reason),
            XdpNextHop::Blackhole => no_neighbor(XdpReason::Blackhole),
            XdpNextHop::Unresolved { interface } => kept_for(XdpReason::NoNeighbor, *interface),
            XdpNextHop::NoRedirect(neighbor) => {
                with_reason(XdpReason::NoRedirect, neighbor.words(slots, keys))
            }
            XdpNextHop::NoMultiBuffer(neighbor) => {
                with_reason(XdpReason::NoMultiBuffer, neighbor.words(slots, keys))
            }
            XdpNextHop::Group(members) => group(members, slots),
            XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, mtu, mtu6 } => {
                let macs = [destination.0, source.0].concat();
                let [first, second, third] = [0, 4, 8].map(|at| word(&macs[at..at + 4]));
                let leads = half_words(0, counted_as(*interface));
                let device = half_words(keys.get(ifindex).copied().unwrap_or(0), *mtu6);
                [first, second, third, *ifindex, half_words(*mtu, *vlan), leads, device, 0]
            }
        }
    }

    /// Refuses what the layout cannot express: a group of one slot would count as no group.
    fn check(&self, hop: NextHop) -> Result<(), EngineError> {
        match self {
            XdpNextHop::Group(members) if members.len() < 2 || !members.len().is_power_of_two() => {
                Err(EngineError::Group { hop: hop.0, slots: members.len() })
            }
            XdpNextHop::NoRedirect(neighbor) | XdpNextHop::NoMultiBuffer(neighbor) => neighbor.check(hop),
            XdpNextHop::Neighbor { interface, .. } | XdpNextHop::Unresolved { interface } => {
                fits("interfaces", usize::from(*interface) + 1, COUNTED - 1)
            }
            _ => Ok(()),
        }
    }
}

/// A neighbour that does not get some of the frames, for this reason.
fn with_reason(reason: XdpReason, mut words: [u32; HOP]) -> [u32; HOP] {
    let [_, interface] = halves_of(words[REASON_WORD]);
    words[REASON_WORD] = half_words(reason as u16, interface);
    words
}

/// A next hop whose packets are not forwarded for this reason.
fn no_neighbor(reason: XdpReason) -> [u32; HOP] {
    [0, 0, 0, 0, 0, half_words(reason as u16, 0), 0, 0]
}

/// A next hop by an interface, which the strict source check needs, whose packets are not forwarded for this reason.
fn kept_for(reason: XdpReason, interface: u16) -> [u32; HOP] {
    [0, 0, 0, 0, 0, half_words(reason as u16, counted_as(interface)), 0, 0]
}

/// Appends the slots of a group and after them its members, each once: the source check tries each member.
fn group(members: &[NextHop], slots: &mut Vec<u16>) -> [u32; HOP] {
    let first = slots.len() as u32;
    slots.extend(members.iter().map(|member| member.0));
    let mut once: Vec<u16> = members.iter().map(|member| member.0).collect();
    once.sort_unstable();
    once.dedup();
    let (first_member, count) = (slots.len() as u32, once.len() as u32);
    slots.extend(once);
    [first_member, count, 0, 0, 0, 0, first, members.len() as u32 - 1]
}

/// The interface number in the program, where 0 is no interface.
fn counted_as(interface: u16) -> u16 {
    // The caller has checked the number against the limit.
    interface.saturating_add(1)
}

fn fits(what: &'static str, needed: usize, limit: usize) -> Result<(), EngineError> {
    if needed > limit { Err(EngineError::TooLarge { what, needed, limit }) } else { Ok(()) }
}

/// The hash table of interfaces.
#[derive(Default)]
pub(super) struct IngressTable {
    pub words: Vec<u32>,
    /// The factor of the hash by which the program finds home places.
    pub factor: u64,
}

/// The first factor to try, as in multiplicative hashing after Knuth; the others are its powers.
const FIRST_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Far more than are necessary: a quarter of the places is in use at most, because no more interfaces can be counted.
const FACTORS: usize = 64;

impl IngressTable {
    /// Tries factors until every interface has a place.
    fn new(interfaces: &[XdpInterface], rules: &[XdpRules]) -> Result<IngressTable, EngineError> {
        for interface in interfaces {
            fits("interfaces", usize::from(interface.number) + 1, COUNTED - 1)?;
            fits("tables of VRFs", interface.table.into(), VRFS)?;
        }
        let powers = iter::successors(Some(FIRST_FACTOR), |factor| Some(factor.wrapping_mul(FIRST_FACTOR)));
        let mut others = powers.take(FACTORS).skip(1);
        let mut ports = IngressTable::with_factor(interfaces, FIRST_FACTOR).or_else(|refused| {
            others.find_map(|factor| IngressTable::with_factor(interfaces, factor).ok()).ok_or(refused)
        })?;
        ports.mark(interfaces, rules);
        Ok(ports)
    }

    /// Marks the interfaces that have rules.
    fn mark(&mut self, interfaces: &[XdpInterface], rules: &[XdpRules]) {
        let rules: BTreeMap<u16, &XdpRules> = rules.iter().map(|of| (of.interface, of)).collect();
        for interface in interfaces {
            let Some(XdpRules { inet, inet6, .. }) = rules.get(&interface.number) else { continue };
            let mark = |list: &[_], mark| if list.is_empty() { 0 } else { mark };
            let marks = mark(inet, RULES_INET) | mark(inet6, RULES_INET6);
            let is_it = |place: &usize| self.words[*place..][..PORT] == port(interface);
            let place = places(self.factor, interface.ifindex, interface.vlan).find(is_it);
            place.into_iter().for_each(|place| self.words[place + 1] |= half_words(0, marks));
        }
    }

    /// Each interface at its home place or up to three places after it.
    fn with_factor(interfaces: &[XdpInterface], factor: u64) -> Result<IngressTable, EngineError> {
        let mut words = vec![0; PORTS * PORT];
        for interface in interfaces {
            let XdpInterface { ifindex, vlan, .. } = *interface;
            let mut places = places(factor, ifindex, vlan);
            let free = places.find(|place| words[*place] == 0);
            let place = free.ok_or(EngineError::Interfaces { ifindex, vlan })?;
            words[place..place + PORT].copy_from_slice(&port(interface));
        }
        Ok(IngressTable { words, factor })
    }
}

/// The words at which the program looks for an interface.
fn places(factor: u64, ifindex: u32, vlan: u16) -> impl Iterator<Item = usize> {
    let home = (u64::from(ifindex) << 12 | u64::from(vlan)).wrapping_mul(factor) >> (u64::BITS - PORT_BITS);
    (home as usize..home as usize + 4).map(|place| place % PORTS * PORT)
}

/// `struct port`.
fn port(interface: &XdpInterface) -> [u32; PORT] {
    let check = match interface.source_check {
        SourceCheck::Off => 0,
        SourceCheck::Loose => 4,
        SourceCheck::Strict => 8,
    };
    let wanted = u8::from(interface.inet) | u8::from(interface.inet6) << 1 | check;
    let wanted = u16::from(wanted) | interface.table << TABLE_SHIFT;
    let mac = interface.mac.0;
    let last = half_words(u16::from_ne_bytes([mac[4], mac[5]]), counted_as(interface.number));
    [interface.ifindex, half_words(interface.vlan, wanted), word(&mac[..4]), last]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT_1: XdpInterface = XdpInterface {
        number: 0,
        ifindex: 1,
        vlan: 0,
        mac: Mac([2; 6]),
        inet: true,
        inet6: false,
        table: 0,
        source_check: SourceCheck::Off,
    };

    /// Checks that as many interfaces as can be counted have places where the program looks for them.
    fn all_have_places(device_and_vlan: impl Fn(u16) -> (u32, u16)) {
        let interface = |number| {
            let (ifindex, vlan) = device_and_vlan(number);
            XdpInterface { number, ifindex, vlan, ..PORT_1 }
        };
        let all: Vec<_> = (0..COUNTED as u16 - 1).map(interface).collect();
        let IngressTable { words, factor } = IngressTable::new(&all, &[]).unwrap();
        for interface in all {
            let mut places = places(factor, interface.ifindex, interface.vlan);
            assert!(places.any(|place| words[place..place + PORT] == port(&interface)), "{interface:?}");
        }
    }

    #[test]
    fn all_interfaces_have_places_whatever_their_indices_and_vlans() {
        for devices in [1, 2, 3, 8, 100, 1_000] {
            all_have_places(|number| (2 + u32::from(number % devices), number / devices));
            all_have_places(|number| (2 + 61 * u32::from(number % devices), 4_094 - number / devices));
        }
        for shift in 0..22 {
            all_have_places(|number| (1 + (u32::from(number) << shift), 0));
            all_have_places(|number| (1 + (u32::from(number) << shift), number));
        }
    }

    #[test]
    fn an_interface_that_is_named_too_often_is_refused() {
        assert!(IngressTable::new(&[PORT_1; 4], &[]).is_ok());
        let refused = IngressTable::new(&[PORT_1; 5], &[]).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("interface 1, VLAN 0")));
    }

    #[test]
    fn numbers_beyond_the_limits_are_refused() {
        let refused = |ingress| IngressTable::new(&[ingress], &[]).err().unwrap().to_string();
        assert!(refused(XdpInterface { number: COUNTED as u16 - 1, ..PORT_1 }).contains("1023 interfaces"));
        assert!(refused(XdpInterface { table: 256, ..PORT_1 }).contains("255 tables of VRFs"));
        let next_hops = vec![(NextHop(1), XdpNextHop::Unresolved { interface: u16::MAX })];
        assert!(
            CompiledConfig::new(&XdpConfig { next_hops, ..XdpConfig::default() }, &DevmapKeys::new())
                .is_err()
        );
    }

    #[test]
    fn the_slots_of_a_group_are_a_power_of_two() {
        let plan = |slots: usize| {
            let group = XdpNextHop::Group(vec![NextHop(2); slots]);
            CompiledConfig::new(
                &XdpConfig { next_hops: vec![(NextHop(5), group)], ..XdpConfig::default() },
                &DevmapKeys::new(),
            )
        };
        for impossible in [0, 1, 3] {
            assert!(plan(impossible).is_err(), "{impossible}");
        }
        let compiled = plan(4).unwrap();
        assert_eq!(compiled.hops[5 * HOP..][..HOP], [4, 1, 0, 0, 0, 0, 0, 3]);
        assert_eq!(compiled.slots, pairs(&[2; 5]), "four slots and their only member");
        assert_eq!(compiled.hops[..HOP], no_neighbor(XdpReason::NoRoute));
        assert_eq!(compiled.hops[HOP..2 * HOP], no_neighbor(XdpReason::NoNeighbor));
    }
}
