//! What the program goes by besides the tables: interfaces, next hops, groups.

use fullview_table::NextHop;

use super::counters::XdpReason;
use super::devices::DevmapKeys;
use super::error::EngineError;
use super::layout::{COUNTED, HOP, HOPS, PORT, PORTS, SLOTS, VRFS};
use crate::interface::SourceCheck;
use crate::wire::ethernet::Mac;

/// An interface whose packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpInterface {
    /// By which it is counted.
    pub number: u16,
    /// The device's index in the kernel.
    pub ifindex: u32,
    /// The VLAN, 0 for untagged frames.
    pub vlan: u16,
    /// Frames to another address are passed.
    pub mac: Mac,
    /// Whether its IPv4 packets are forwarded.
    pub inet: bool,
    /// Whether its IPv6 packets are forwarded.
    pub inet6: bool,
    /// By which table: 0 is the main one.
    pub table: u16,
    /// How sources of packets that are forwarded are checked; what fails is dropped.
    pub source_check: SourceCheck,
}

/// What becomes of a packet with this next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XdpNextHop {
    /// It goes to a station.
    Neighbor {
        /// The number of the interface it leaves by.
        interface: u16,
        /// The device's index in the kernel.
        ifindex: u32,
        /// The VLAN, 0 without a tag.
        vlan: u16,
        /// The device's address.
        source: Mac,
        /// The station's address.
        destination: Mac,
        /// The longest packet the link takes; not 0.
        mtu: u16,
    },
    /// Its flow's hash picks one of these next hops: a power of two of them, none a group.
    Group(Vec<NextHop>),
    /// The station is not known, or its link is down; passed to the kernel.
    Unresolved {
        /// The number of the interface that it would leave by.
        interface: u16,
    },
    /// It is passed to the kernel.
    Pass(XdpReason),
}

/// All that the program goes by besides the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpConfig {
    /// Interfaces whose packets are forwarded; frames of others are passed.
    pub interfaces: Vec<XdpInterface>,
    /// What next hops stand for, in any order; packets of others are passed.
    pub next_hops: Vec<(NextHop, XdpNextHop)>,
    /// Mixed into the hash of flows.
    pub flow_seed: u64,
}

/// A plan as the program reads it.
#[derive(Default)]
pub(super) struct CompiledConfig {
    pub hops: Vec<u32>,
    pub slots: Vec<u32>,
    pub ports: Vec<u32>,
    pub flow_seed: [u32; 2],
}

impl CompiledConfig {
    /// Devices without a place are sent to by their index.
    pub fn new(plan: &XdpConfig, places: &DevmapKeys) -> Result<CompiledConfig, EngineError> {
        let count = plan.next_hops.iter().map(|(hop, _)| hop.index() + 1).max().unwrap_or(1);
        let hops = pass(XdpReason::NoNeighbor).repeat(count.min(HOPS));
        let mut compiled = CompiledConfig { hops, ..CompiledConfig::default() };
        // Of no route.
        compiled.set(NextHop::NONE, pass(XdpReason::NoRoute));
        let mut slots = Vec::new();
        for (hop, way) in &plan.next_hops {
            way.check(*hop)?;
            compiled.set(*hop, way.words(&mut slots, places));
        }
        fits("slots of groups and their members", slots.len(), SLOTS)?;
        compiled.slots = pairs(&slots);
        compiled.ports = ports(&plan.interfaces)?;
        compiled.flow_seed = halves(plan.flow_seed);
        Ok(compiled)
    }

    fn set(&mut self, hop: NextHop, words: [u32; HOP]) {
        self.hops[hop.index() * HOP..][..HOP].copy_from_slice(&words);
    }
}

impl XdpNextHop {
    /// `struct hop`; slots of a group go to the end of all.
    fn words(&self, slots: &mut Vec<u16>, places: &DevmapKeys) -> [u32; HOP] {
        match self {
            XdpNextHop::Pass(reason) => pass(*reason),
            XdpNextHop::Unresolved { interface } => {
                [0, 0, 0, 0, 0, half_words(XdpReason::NoNeighbor as u16, counted_as(*interface)), 0, 0]
            }
            XdpNextHop::Group(members) => group(members, slots),
            XdpNextHop::Neighbor { interface, ifindex, vlan, source, destination, mtu } => {
                let macs = [destination.0, source.0].concat();
                let [first, second, third] = [0, 4, 8].map(|at| word(&macs[at..at + 4]));
                let leads = half_words(0, counted_as(*interface));
                let place = places.get(ifindex).copied().unwrap_or(0);
                [first, second, third, *ifindex, half_words(*mtu, *vlan), leads, place, 0]
            }
        }
    }

    /// A group of one slot would be taken for none.
    fn check(&self, hop: NextHop) -> Result<(), EngineError> {
        match self {
            XdpNextHop::Group(members) if members.len() < 2 || !members.len().is_power_of_two() => {
                Err(EngineError::Group { hop: hop.0, slots: members.len() })
            }
            XdpNextHop::Neighbor { interface, .. } | XdpNextHop::Unresolved { interface } => {
                fits("interfaces", usize::from(*interface) + 1, COUNTED - 1)
            }
            _ => Ok(()),
        }
    }
}

fn pass(reason: XdpReason) -> [u32; HOP] {
    [0, 0, 0, 0, 0, half_words(reason as u16, 0), 0, 0]
}

/// Its slots go to the end of all, and behind them its members, each once: a source check asks whether one of them
/// leads back.
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

/// In the program 0 is no interface.
fn counted_as(interface: u16) -> u16 {
    // Checked before: there are fewer.
    interface.saturating_add(1)
}

fn fits(what: &'static str, needed: usize, limit: usize) -> Result<(), EngineError> {
    if needed > limit { Err(EngineError::TooLarge { what, needed, limit }) } else { Ok(()) }
}

/// The interfaces, each at its place or up to three behind it.
fn ports(ingress: &[XdpInterface]) -> Result<Vec<u32>, EngineError> {
    let mut ports = vec![0; PORTS * PORT];
    for interface in ingress {
        fits("interfaces", usize::from(interface.number) + 1, COUNTED - 1)?;
        fits("tables of VRFs", interface.table.into(), VRFS)?;
        let home = interface.ifindex as usize + usize::from(interface.vlan) * 61;
        let places = (home..home + 4).map(|place| place % PORTS * PORT);
        let free = places.into_iter().find(|place| ports[*place] == 0);
        let place =
            free.ok_or(EngineError::Interfaces { ifindex: interface.ifindex, vlan: interface.vlan })?;
        ports[place..place + PORT].copy_from_slice(&port(interface));
    }
    Ok(ports)
}

/// `struct port`.
fn port(interface: &XdpInterface) -> [u32; PORT] {
    let check = match interface.source_check {
        SourceCheck::Off => 0,
        SourceCheck::Loose => 4,
        SourceCheck::Strict => 8,
    };
    let wanted = u8::from(interface.inet) | u8::from(interface.inet6) << 1 | check;
    let wanted = u16::from_ne_bytes([wanted, interface.table as u8]);
    let mac = interface.mac.0;
    let last = half_words(u16::from_ne_bytes([mac[4], mac[5]]), counted_as(interface.number));
    [interface.ifindex, half_words(interface.vlan, wanted), word(&mac[..4]), last]
}

/// Half words as they lie in memory, two a word.
pub(super) fn pairs(halves: &[u16]) -> Vec<u32> {
    halves.chunks(2).map(|pair| half_words(pair[0], pair.get(1).copied().unwrap_or(0))).collect()
}

fn half_words(first: u16, second: u16) -> u32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// Four bytes.
fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
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

    #[test]
    fn interfaces_that_share_a_place_stand_behind_each_other() {
        let same_place = |n: u32| XdpInterface { ifindex: 1 + n * PORTS as u32, ..PORT_1 };
        let four: Vec<_> = (0..4).map(same_place).collect();
        let words = ports(&four).unwrap();
        let found: Vec<_> = (1..5).map(|place| words[place * PORT]).collect();
        assert_eq!(found, [1, 1025, 2049, 3073]);
        let five: Vec<_> = (0..5).map(same_place).collect();
        assert!(ports(&five).unwrap_err().to_string().contains("4097"));
    }

    #[test]
    fn numbers_that_the_program_has_no_place_for_are_refused() {
        let refused = |ingress| ports(&[ingress]).unwrap_err().to_string();
        assert!(refused(XdpInterface { number: COUNTED as u16 - 1, ..PORT_1 }).contains("1023 interfaces"));
        assert!(refused(XdpInterface { table: 256, ..PORT_1 }).contains("255 tables of VRFs"));
        let next_hops = vec![(NextHop(1), XdpNextHop::Unresolved { interface: u16::MAX })];
        assert!(
            CompiledConfig::new(&XdpConfig { next_hops, ..XdpConfig::default() }, &DevmapKeys::new())
                .is_err()
        );
    }

    #[test]
    fn groups_need_a_mask() {
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
        assert_eq!(compiled.slots, pairs(&[2; 5]), "four slots, and their only member");
        assert_eq!(compiled.hops[..HOP], pass(XdpReason::NoRoute));
        assert_eq!(compiled.hops[HOP..2 * HOP], pass(XdpReason::NoNeighbor));
    }
}
