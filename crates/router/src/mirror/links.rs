//! The kernel's links: which are ours, what state they are in, where their packets are looked up.

use fullview_table::Family;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::netlink::event::{ALL_LINKS, Link, LinkKind};
use crate::route::{LinkIndex, MAIN_TABLE};
use fullview_plane::interface::InterfaceAddress;

/// What can be done by way of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is not one that we forward by.
    Foreign,
    /// Somebody set it down: the kernel drops its routes.
    Down,
    /// The other end is gone: the kernel keeps its routes.
    NoCarrier,
    Up,
}

/// A port, or a VLAN of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub port: u16,
    pub vlan: Option<u16>,
}

/// All links of the kernel.
#[derive(Default)]
pub(super) struct Links {
    /// The names of the links we forward by; a name's place is its port's number.
    ports: Vec<String>,
    links: FxHashMap<LinkIndex, Known>,
    /// Whether the kernel's settings decide what is forwarded, and those it has told of.
    pub heeds_forwarding: bool,
    forwards: FxHashSet<(LinkIndex, Family)>,
    /// Interface numbers, which stay for ever: they are the indices of counters.
    numbers: Vec<Place>,
    number_of: FxHashMap<Place, u16>,
}

struct Known {
    link: Link,
    addresses: Vec<InterfaceAddress>,
    /// Whether the last dump had it.
    seen: bool,
}

impl Links {
    /// Links of these names will be ours.
    pub fn new(ports: Vec<String>) -> Links {
        let mut links = Links { ports, ..Links::default() };
        (0..).take(links.ports.len()).for_each(|port| links.begin(Place { port, vlan: None }));
        links
    }

    pub fn ports(&self) -> &[String] {
        &self.ports
    }

    /// Takes what is known about a link; returns whether anything changed.
    pub fn set(&mut self, link: Link) -> bool {
        if let LinkKind::Vlan { id, parent } = link.kind
            && let Some(place) = self.vlan(id, parent)
            && !self.number_of.contains_key(&place)
        {
            self.begin(place);
        }
        match self.links.get_mut(&link.index) {
            Some(known) => {
                known.seen = true;
                std::mem::replace(&mut known.link, link.clone()) != link
            }
            None => {
                self.links.insert(link.index, Known { link, addresses: Vec::new(), seen: true });
                true
            }
        }
    }

    /// An interface that never was before. Beyond 65,535 of them the kernel is left alone with the rest.
    fn begin(&mut self, place: Place) {
        if let Ok(number) = u16::try_from(self.numbers.len()) {
            self.numbers.push(place);
            self.number_of.insert(place, number);
        }
    }

    /// Returns whether it was known.
    pub fn remove(&mut self, index: LinkIndex) -> bool {
        self.forwards.retain(|(link, _)| *link != index);
        self.links.remove(&index).is_some()
    }

    /// Returns whether it is new.
    pub fn add_address(&mut self, index: LinkIndex, address: InterfaceAddress) -> bool {
        let Some(known) = self.links.get_mut(&index) else { return false };
        let new = !known.addresses.contains(&address);
        if new {
            known.addresses.push(address);
        }
        new
    }

    /// Returns whether it was there.
    pub fn remove_address(&mut self, index: LinkIndex, address: InterfaceAddress) -> bool {
        let Some(known) = self.links.get_mut(&index) else { return false };
        let before = known.addresses.len();
        known.addresses.retain(|known| *known != address);
        known.addresses.len() < before
    }

    /// Returns whether that is new.
    pub fn set_forwarding(&mut self, index: LinkIndex, family: Family, on: bool) -> bool {
        if on { self.forwards.insert((index, family)) } else { self.forwards.remove(&(index, family)) }
    }

    pub fn forwards(&self, index: LinkIndex, family: Family) -> bool {
        let all = family == Family::Inet || self.forwards.contains(&(ALL_LINKS, family));
        !self.heeds_forwarding || all && self.forwards.contains(&(index, family))
    }

    /// Before a dump: what it does not mention is gone. Its addresses are mentioned anew.
    pub fn mark(&mut self) {
        self.links.values_mut().for_each(|known| known.seen = false);
    }

    /// Before a dump of addresses.
    pub fn forget_addresses(&mut self) {
        self.links.values_mut().for_each(|known| known.addresses.clear());
    }

    /// After a dump: those it did not mention.
    pub fn unseen(&self) -> Vec<LinkIndex> {
        self.links.iter().filter(|(_, known)| !known.seen).map(|(index, _)| *index).collect()
    }

    pub fn get(&self, index: LinkIndex) -> Option<&Link> {
        self.links.get(&index).map(|known| &known.link)
    }

    pub fn addresses(&self, index: LinkIndex) -> &[InterfaceAddress] {
        self.links.get(&index).map_or(&[], |known| &known.addresses)
    }

    /// Ours of that name, as it is now: a link that was removed and made again has another number.
    pub fn by_name(&self, name: &str) -> Option<&Link> {
        self.links.values().map(|known| &known.link).find(|link| link.name == name)
    }

    /// Where the frames of a link come from and go to, if it is ours. A VLAN is a port itself if it is named as one and
    /// its parent is not: with both, its frames would come in twice.
    pub fn place(&self, index: LinkIndex) -> Option<Place> {
        let link = self.get(index)?;
        let itself = || self.port(&link.name).map(|port| Place { port, vlan: None });
        match link.kind {
            LinkKind::Vlan { id, parent } => self.vlan(id, parent).or_else(itself),
            _ => itself(),
        }
    }

    fn vlan(&self, id: u16, parent: LinkIndex) -> Option<Place> {
        let port = self.port(&self.get(parent)?.name)?;
        (1..=4094).contains(&id).then_some(Place { port, vlan: Some(id) })
    }

    fn port(&self, name: &str) -> Option<u16> {
        let place = self.ports.iter().position(|port| port == name)?;
        u16::try_from(place).ok()
    }

    /// The interface number of a link that is ours.
    pub fn number(&self, index: LinkIndex) -> Option<u16> {
        self.number_of.get(&self.place(index)?).copied()
    }

    /// Every interface there ever was, by number, with the link that it is now.
    pub fn interfaces(&self) -> impl Iterator<Item = (Place, Option<&Link>)> {
        let links = self.links.values().map(|known| &known.link);
        let at: FxHashMap<Place, &Link> =
            links.filter_map(|link| Some((self.place(link.index)?, link))).collect();
        self.numbers.iter().map(move |place| (*place, at.get(place).copied()))
    }

    /// The link that an interface is now.
    pub fn numbered(&self, interface: u16) -> Option<LinkIndex> {
        let place = self.numbers.get(usize::from(interface))?;
        self.links.keys().copied().find(|index| self.place(*index).as_ref() == Some(place))
    }

    pub fn state(&self, index: LinkIndex) -> State {
        match self.get(index) {
            Some(link) if self.number(index).is_some() => match (link.up, link.carrier) {
                (false, _) => State::Down,
                (true, false) => State::NoCarrier,
                (true, true) => State::Up,
            },
            _ => State::Foreign,
        }
    }

    /// The tables in which packets of our links are looked up.
    pub fn tables(&self) -> Vec<u32> {
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
}
