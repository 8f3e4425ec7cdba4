//! The kernel's links: which of them are ports, what state they are in, which table looks up their packets.

use std::collections::{BTreeSet, VecDeque};

use fullview_plane::interface::InterfaceAddress;
use fullview_table::Family;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::{ALL_LINKS, AssignedAddress, Link, LinkKind};
use crate::route::{LinkIndex, MAIN_TABLE};

/// Whether packets can be sent on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// It is not a port of the router, nor a VLAN of one.
    Foreign,
    /// It is set down: the kernel drops its routes.
    Down,
    /// It is set up and has no carrier: the kernel keeps its routes.
    NoCarrier,
    Up,
}

/// A port, or a VLAN of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PortVlan {
    pub port: u16,
    pub vlan: Option<u16>,
}

/// All links of the kernel.
#[derive(Default)]
pub(super) struct LinkTable {
    /// The names of the ports, by number, and the numbers by name.
    ports: Vec<String>,
    port_numbers: FxHashMap<String, u16>,
    links: FxHashMap<LinkIndex, KnownLink>,
    /// How many links came, those that went again included.
    births: u64,
    /// Links that carry nothing by newer messages than those applied here.
    failed: FxHashSet<LinkIndex>,
    /// Links whose hops may be dead no longer, and whether the dump of IPv4 routes under way has begun since.
    revived: FxHashMap<LinkIndex, bool>,
    /// Whether the kernel's settings decide what is forwarded.
    pub follows_kernel: bool,
    /// Where the kernel forwards.
    forwards: FxHashSet<(LinkIndex, Family)>,
    /// Interfaces by number. A number is the index of counters: it is given to another interface only when all are
    /// taken.
    interfaces: Vec<PortVlan>,
    numbers: FxHashMap<PortVlan, u16>,
    /// The number of numbers.
    most: u16,
    /// VLANs whose links were removed, the earliest first; some may be back.
    gone: VecDeque<PortVlan>,
    lacks_numbers: bool,
}

struct KnownLink {
    link: Link,
    /// Which link of this table it is, in the order in which they came.
    birth: u64,
    addresses: Vec<KnownAddress>,
    /// Whether the last dump listed it.
    seen: bool,
}

struct KnownAddress {
    address: AssignedAddress,
    /// Whether the last dump listed it.
    seen: bool,
}

impl LinkTable {
    /// No links yet; those of these names will be ports.
    pub fn new(ports: Vec<String>) -> LinkTable {
        let port_numbers = ports.iter().cloned().zip(0..).collect();
        let mut links = LinkTable { ports, port_numbers, most: u16::MAX, ..LinkTable::default() };
        for port in (0..).take(links.ports.len()) {
            links.number_new(PortVlan { port, vlan: None });
        }
        links
    }

    /// Limits how many interfaces have numbers.
    pub fn limit(&mut self, most: u16) {
        self.most = most;
    }

    /// Whether interfaces have no number, for the first time since all had one.
    pub fn begins_to_lack_numbers(&mut self, index: LinkIndex) -> bool {
        let lacks = self.place(index).is_some() && self.number(index).is_none();
        lacks && !std::mem::replace(&mut self.lacks_numbers, true)
    }

    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Stores a link; returns whether anything changed.
    pub fn set(&mut self, link: Link) -> bool {
        let is_numbered = match link.kind {
            LinkKind::Vlan { id, parent } => {
                self.vlan(id, parent).is_some_and(|place| self.number_new(place))
            }
            _ => false,
        };
        match self.links.get_mut(&link.index) {
            Some(known) => {
                known.seen = true;
                std::mem::replace(&mut known.link, link.clone()) != link || is_numbered
            }
            None => {
                self.births += 1;
                let (birth, addresses) = (self.births, Vec::new());
                self.links.insert(link.index, KnownLink { link, birth, addresses, seen: true });
                true
            }
        }
    }

    /// Gives a number to an interface that has none, and returns whether it did. Without a free number the kernel
    /// forwards on it.
    fn number_new(&mut self, place: PortVlan) -> bool {
        if self.numbers.contains_key(&place) {
            return false;
        }
        let next = u16::try_from(self.interfaces.len()).ok().filter(|next| *next < self.most);
        let Some(number) = next.or_else(|| self.release_number()) else { return false };
        match self.interfaces.get_mut(usize::from(number)) {
            Some(known) => *known = place,
            None => self.interfaces.push(place),
        }
        self.numbers.insert(place, number);
        true
    }

    /// Takes the number from the VLAN that has been gone for the longest time.
    fn release_number(&mut self) -> Option<u16> {
        while let Some(gone) = self.gone.pop_front() {
            let is_back = self.links.keys().any(|index| self.place(*index) == Some(gone));
            if !is_back && let Some(number) = self.numbers.remove(&gone) {
                self.lacks_numbers = false;
                return Some(number);
            }
        }
        None
    }

    /// Returns whether the link was known.
    pub fn remove(&mut self, index: LinkIndex) -> bool {
        let place = self.place(index).filter(|place| place.vlan.is_some());
        self.gone
            .extend(place.filter(|place| self.numbers.contains_key(place) && !self.gone.contains(place)));
        self.forwards.retain(|(link, _)| *link != index);
        self.failed.remove(&index);
        self.revived.remove(&index);
        self.links.remove(&index).is_some()
    }

    /// Returns whether the address is new.
    pub fn add_address(&mut self, index: LinkIndex, address: AssignedAddress) -> bool {
        let Some(known) = self.links.get_mut(&index) else { return false };
        let listed = known.addresses.iter_mut().find(|known| known.address == address);
        let is_new = listed.is_none();
        match listed {
            Some(known) => known.seen = true,
            None => known.addresses.push(KnownAddress { address, seen: true }),
        }
        is_new
    }

    /// Returns whether the address was there.
    pub fn remove_address(&mut self, index: LinkIndex, address: AssignedAddress) -> bool {
        let Some(known) = self.links.get_mut(&index) else { return false };
        let before = known.addresses.len();
        known.addresses.retain(|known| known.address != address);
        known.addresses.len() < before
    }

    /// Returns whether the setting changed.
    pub fn set_forwarding(&mut self, index: LinkIndex, family: Family, on: bool) -> bool {
        if on { self.forwards.insert((index, family)) } else { self.forwards.remove(&(index, family)) }
    }

    /// Whether packets of a family that arrive on a link are to be forwarded.
    pub fn forwards(&self, index: LinkIndex, family: Family) -> bool {
        let runs = || self.get(index).is_some_and(|link| link.runs_inet6);
        let all = family == Family::Inet || self.forwards.contains(&(ALL_LINKS, family)) && runs();
        !self.follows_kernel || all && self.forwards.contains(&(index, family))
    }

    /// Begins a dump of links.
    pub fn mark(&mut self) {
        self.links.values_mut().for_each(|known| known.seen = false);
    }

    /// Begins a dump of addresses.
    pub fn mark_addresses(&mut self) {
        self.links.values_mut().flat_map(|known| &mut known.addresses).for_each(|known| known.seen = false);
    }

    /// Removes the addresses that the dump did not list; returns how many.
    pub fn sweep_addresses(&mut self) -> usize {
        let sweep = |known: &mut KnownLink| known.addresses.extract_if(.., |address| !address.seen).count();
        self.links.values_mut().map(sweep).sum()
    }

    /// The links that the dump did not list.
    pub fn unseen(&self) -> Vec<LinkIndex> {
        self.links.iter().filter(|(_, known)| !known.seen).map(|(index, _)| *index).collect()
    }

    pub fn get(&self, index: LinkIndex) -> Option<&Link> {
        self.links.get(&index).map(|known| &known.link)
    }

    /// The addresses of a link, each once, whatever its peers are.
    pub fn addresses(&self, index: LinkIndex) -> Vec<InterfaceAddress> {
        let known = self.links.get(&index).into_iter().flat_map(|known| &known.addresses);
        let mut addresses = Vec::new();
        for own in known.map(|known| known.address.own) {
            if !addresses.contains(&own) {
                addresses.push(own);
            }
        }
        addresses
    }

    pub fn has_inet_address(&self, index: LinkIndex) -> bool {
        let known = self.links.get(&index).into_iter().flat_map(|known| &known.addresses);
        known.into_iter().any(|known| known.address.own.ip.is_ipv4())
    }

    /// Whether a link is set up and has a carrier.
    pub fn carries(&self, index: LinkIndex) -> bool {
        self.get(index).is_some_and(|link| link.up && link.carrier)
    }

    /// Whether a link is known and set down.
    pub fn is_down(&self, index: LinkIndex) -> bool {
        self.get(index).is_some_and(|link| !link.up)
    }

    /// The link that has this name now, unless another one has its packets. A link that was removed and made again has another
    /// number.
    pub fn by_name(&self, name: &str) -> Option<&Link> {
        let named = self.links.values().map(|known| &known.link).find(|link| link.name == name);
        named.filter(|link| !self.is_part(link))
    }

    /// See [`super::Mirror::link_birth`].
    pub fn birth(&self, index: LinkIndex) -> u64 {
        self.links.get(&index).map_or(0, |known| known.birth)
    }

    /// Whether a link is a part of another one, which receives its packets: of a bridge, a bond, a team. A VRF only looks them up.
    fn is_part(&self, link: &Link) -> bool {
        let master = link.master.and_then(|master| self.get(master));
        master.is_some_and(|master| !matches!(master.kind, LinkKind::Vrf { .. }))
    }

    /// The port or VLAN that a link is, if the router forwards on it. A VLAN counts as a port itself if it is named as
    /// one and its parent is not: with both, its frames would arrive twice.
    pub fn place(&self, index: LinkIndex) -> Option<PortVlan> {
        let link = self.get(index).filter(|link| !self.is_part(link))?;
        let itself = || self.port(&link.name).map(|port| PortVlan { port, vlan: None });
        match link.kind {
            LinkKind::Vlan { id, parent } => self.vlan(id, parent).or_else(itself),
            _ => itself(),
        }
    }

    fn vlan(&self, id: u16, parent: LinkIndex) -> Option<PortVlan> {
        let port = self.port(&self.get(parent).filter(|link| !self.is_part(link))?.name)?;
        (1..=4094).contains(&id).then_some(PortVlan { port, vlan: Some(id) })
    }

    fn port(&self, name: &str) -> Option<u16> {
        self.port_numbers.get(name).copied()
    }

    /// The number of the interface that a link is.
    pub fn number(&self, index: LinkIndex) -> Option<u16> {
        self.numbers.get(&self.place(index)?).copied()
    }

    /// Every interface that ever existed, by number, with the link that it is now.
    pub fn interfaces(&self) -> impl Iterator<Item = (PortVlan, Option<&Link>)> {
        let links = self.links.values().map(|known| &known.link);
        let at: FxHashMap<PortVlan, &Link> =
            links.filter_map(|link| Some((self.place(link.index)?, link))).collect();
        self.interfaces.iter().map(move |place| (*place, at.get(place).copied()))
    }

    /// The link that an interface is now.
    pub fn numbered(&self, interface: u16) -> Option<LinkIndex> {
        let place = self.interfaces.get(usize::from(interface))?;
        self.links.keys().copied().find(|index| self.place(*index).as_ref() == Some(place))
    }

    /// Notes whether a link that is known has failed; returns whether that is new.
    pub fn set_failed(&mut self, index: LinkIndex, failed: bool) -> bool {
        match failed {
            true => self.links.contains_key(&index) && self.failed.insert(index),
            false => self.failed.remove(&index),
        }
    }

    /// Hops by this link that the kernel reported as dead may be used again. It reports that with the next dump only.
    pub fn revive(&mut self, index: LinkIndex) {
        self.revived.insert(index, false);
    }

    pub fn is_revived(&self, index: LinkIndex) -> bool {
        self.revived.contains_key(&index)
    }

    /// Begins a dump of IPv4 routes, which lists the hops of revived links as they are.
    pub fn mark_revived(&mut self) {
        self.revived.values_mut().for_each(|is_listed| *is_listed = true);
    }

    /// Returns whether the dump settles which hops are dead.
    pub fn sweep_revived(&mut self) -> bool {
        let before = self.revived.len();
        self.revived.retain(|_, is_listed| !*is_listed);
        self.revived.len() < before
    }

    /// Returns whether any link had failed.
    pub fn forget_failed(&mut self) -> bool {
        !std::mem::take(&mut self.failed).is_empty()
    }

    /// Of a link that failed by newer messages only that is known: the kernel decides about packets that have no other way.
    pub fn state(&self, index: LinkIndex) -> LinkState {
        match self.reported_state(index) {
            LinkState::Up if self.failed.contains(&index) => LinkState::NoCarrier,
            state => state,
        }
    }

    /// The state by the messages that are applied.
    pub fn reported_state(&self, index: LinkIndex) -> LinkState {
        match self.get(index) {
            Some(link) if self.number(index).is_some() => match (link.up, link.carrier) {
                (false, _) => LinkState::Down,
                (true, false) => LinkState::NoCarrier,
                (true, true) => LinkState::Up,
            },
            _ => LinkState::Foreign,
        }
    }

    /// The tables in which packets of all interfaces are looked up.
    pub fn tables(&self) -> BTreeSet<u32> {
        self.interfaces().filter_map(|(_, link)| Some(self.table(link?.index))).collect()
    }

    /// The kernel's number of the table in which the packets of a link are looked up.
    pub fn table(&self, index: LinkIndex) -> u32 {
        match self.vrf(index).map(|vrf| vrf.kind) {
            Some(LinkKind::Vrf { table }) => table,
            _ => MAIN_TABLE,
        }
    }

    /// The VRF that a link belongs to.
    pub fn vrf(&self, index: LinkIndex) -> Option<&Link> {
        let master = self.get(index).and_then(|link| self.get(link.master?));
        master.filter(|master| matches!(master.kind, LinkKind::Vrf { .. }))
    }

    /// The name of a link, or its number if it is not known.
    pub fn name(&self, link: LinkIndex) -> String {
        self.get(link).map_or_else(|| format!("link {link}"), |link| link.name.clone())
    }
}
