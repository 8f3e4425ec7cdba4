//! Changes of the control plane's state as events: links, addresses, neighbours, routes, next-hop objects, rules. The
//! kernel reports them over netlink; a router without a kernel writes the same events from its configuration.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;

use fullview_plane::interface::InterfaceAddress;
use fullview_plane::policy::{RulePrefix, RuleTransport};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Family;

use super::uapi;
use crate::route::{AnyPrefix, HopSet, LinkIndex, RouteAction, RouteHop};

/// Stands for all links; no link has this number.
pub const ALL_LINKS: LinkIndex = 0;

/// One thing that exists now with this state, or that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// A link exists, or changed.
    Link(Link),
    /// A link was removed.
    LinkRemoved(LinkIndex),
    /// This host has an address on a link.
    Address(LinkIndex, AssignedAddress),
    /// This host no longer has an address on a link.
    AddressRemoved(LinkIndex, AssignedAddress),
    /// A neighbour exists, or its state changed.
    Neighbor(LinkNeighbor),
    /// A neighbour was removed.
    NeighborRemoved(LinkIndex, IpAddr),
    /// A route exists.
    Route(RouteEntry, Placement),
    /// A route was removed.
    RouteRemoved(RouteEntry),
    /// A next-hop object exists, or changed.
    NextHop(u32, NextHopObject),
    /// A next-hop object was removed, and with it the routes that used it.
    NextHopRemoved(u32),
    /// Whether packets of a family that arrive on a link are forwarded (sysctl `forwarding`), or packets of that family
    /// at all ([`ALL_LINKS`]).
    Forwarding(LinkIndex, Family, bool),
    /// A rule of policy routing exists.
    Rule(Rule),
    /// A rule of policy routing was removed.
    RuleRemoved(Rule),
}

/// An address as the kernel assigns it to a link. The kernel may have an IPv4 address several times, each with another peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedAddress {
    /// The address.
    pub own: InterfaceAddress,
    /// The other end of a point-to-point link.
    pub peer: Option<Ipv4Addr>,
}

impl From<InterfaceAddress> for AssignedAddress {
    fn from(own: InterfaceAddress) -> AssignedAddress {
        AssignedAddress { own, peer: None }
    }
}

/// A rule of policy routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The family of the packets that it selects.
    pub family: Family,
    /// Rules are evaluated in this order, the lowest number first.
    pub priority: u32,
    /// The packets that it selects.
    pub selector: RuleSelector,
    /// What is done with the selected packets.
    pub target: RuleTarget,
    /// The bytes of the message that do not change while the rule exists: they tell rules apart.
    pub identity: Vec<u8>,
}

/// The packets that a rule selects: those for which everything here holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSelector {
    /// They arrived on the link of this name, or on a link of the VRF of this name (`iif`).
    pub ingress: Option<String>,
    /// Their sources (`from`).
    pub source: Option<RulePrefix>,
    /// Their destinations (`to`).
    pub destination: Option<RulePrefix>,
    /// Their protocol and ports (`ipproto`, `sport`, `dport`).
    pub transport: RuleTransport,
    /// They have a mark (`fwmark`), which forwarded packets do not have.
    pub is_marked: bool,
    /// They have something else that the router does not look at: TOS, what an unknown attribute asks for.
    pub has_others: bool,
    /// It selects all other packets instead (`not`).
    pub inverted: bool,
}

/// What a rule does with the packets that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTarget {
    /// They are looked up in this table.
    Table(u32),
    /// The same, except that default routes of the table do not count (`suppress_prefixlength 0`).
    SpecificRoutes(u32),
    /// Those that arrived on links of a VRF are looked up in that VRF's table (`l3mdev`).
    VrfTable,
    /// The first rule of this priority comes next, if there is one.
    Goto(u32),
    /// The next rule comes next (`nop`).
    Next,
    /// The kernel drops them, or does something else, or the rule does not use all routes of its table, or has attributes
    /// that are not known here.
    Other,
}

/// A network interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: LinkIndex,
    /// Its name.
    pub name: String,
    /// Its Ethernet address; zeros if it is not an Ethernet link.
    pub mac: Mac,
    /// The longest IP packet that it takes.
    pub mtu: u32,
    /// The longest IPv6 packet, where that is less (sysctl `net.ipv6.conf.NAME.mtu`).
    pub mtu6: Option<u32>,
    /// IPv6 runs on it: it is not disabled (sysctl `net.ipv6.conf.NAME.disable_ipv6`), and the MTU is large enough.
    pub runs_inet6: bool,
    /// It is set up (`IFF_UP`).
    pub up: bool,
    /// It has a carrier (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// Its type.
    pub kind: LinkKind,
    /// The link that it belongs to: a VRF, a bridge.
    pub master: Option<LinkIndex>,
}

/// The types of links that the mirror treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The frames of one VLAN (IEEE 802.1Q) on another link.
    Vlan {
        /// The VLAN's number, 1 to 4094.
        id: u16,
        /// The link that carries the tagged frames.
        parent: LinkIndex,
    },
    /// A VRF. Packets that arrive on its members are looked up in its table.
    Vrf {
        /// The kernel's number of the table.
        table: u32,
    },
    /// Any other type.
    Other,
}

/// A neighbour's address on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkNeighbor {
    /// The link that it is on.
    pub link: LinkIndex,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address, if that is known.
    pub mac: Option<Mac>,
    /// How far its Ethernet address can be relied on.
    pub state: NeighborState,
}

/// The `NUD_` flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborState(pub u16);

impl NeighborState {
    /// The address does not expire.
    pub const PERMANENT: NeighborState = NeighborState(uapi::NUD_PERMANENT);

    /// Whether frames may be sent to its Ethernet address.
    pub fn is_usable(self) -> bool {
        const USABLE: u16 =
            uapi::NUD_REACHABLE | uapi::NUD_STALE | uapi::NUD_DELAY | uapi::NUD_PROBE | uapi::NUD_PERMANENT;
        self.0 & USABLE != 0
    }

    /// Whether the kernel would verify the address before it relied on it.
    pub fn is_stale(self) -> bool {
        self.0 & uapi::NUD_STALE != 0
    }
}

/// [`RouteEntry::protocol`] of routes that follow from the addresses of interfaces.
pub const PROTOCOL_KERNEL: u8 = uapi::RTPROT_KERNEL;
/// [`RouteEntry::protocol`] of static routes.
pub const PROTOCOL_STATIC: u8 = uapi::RTPROT_STATIC;
/// [`RouteEntry::protocol`] of routes that a router advertised. Programs that follow advertisements give it too.
pub const PROTOCOL_RA: u8 = uapi::RTPROT_RA;

/// A route of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// The kernel's number of its table.
    pub table: u32,
    /// The destinations that it takes.
    pub prefix: AnyPrefix,
    /// Of several routes to one prefix the lowest metric wins.
    pub metric: u32,
    /// What packets must have besides their destination for the route to take them.
    pub selective: Option<Selector>,
    /// The program or mechanism that made it (`RTPROT_`).
    pub protocol: u8,
    /// What tells it apart from other routes that do the same.
    pub origin: RouteOrigin,
    /// What is done with its packets.
    pub action: RouteAction<HopSet>,
}

/// What the kernel tells routes apart by that do the same for the same packets. Of IPv4 it has `ip route add 192.0.2.0/24 dev eth1`
/// beside the network of an address on eth1 (`fib_find_info` in net/ipv4/fib_semantics.c). Of IPv6 it has several only if they have
/// no next hops here, one for each link: to addresses of this host, and to multicast groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteOrigin {
    /// As in [`RouteEntry`].
    pub protocol: u8,
    /// How far its destinations are (`RT_SCOPE_`).
    pub scope: u8,
    /// The source of this host's packets (`src`), or 0; mixed with a hash of metrics (`mtu`, `advmss`), realms, and the link of a
    /// route without next hops, where a route has any of these.
    pub attributes: u32,
    /// A bit for each of the first hops whose gateway need not be on a connected network (`onlink`).
    pub onlink: u16,
}

/// What packets must have besides their destination for a route to take them: a TOS (IPv4), or a source within a prefix (IPv6). It is
/// compared only, and kept with each of a million routes, so it is a number: that of the TOS, or a hash of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector(NonZeroU32);

impl Selector {
    /// Packets with these TOS bits; `None` if the route takes those with any.
    pub fn tos(tos: u8) -> Option<Selector> {
        NonZeroU32::new(tos.into()).map(Selector)
    }

    /// Packets from this prefix.
    pub fn source(prefix: AnyPrefix) -> Selector {
        Selector(NonZeroU32::MIN | hash(&prefix))
    }
}

/// A number that is another one for nearly every other value.
pub fn hash(value: &impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish() as u32
}

/// A next-hop object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHopObject {
    /// One next hop. An object that the forwarding path cannot follow is [`RouteAction::Local`]: the kernel forwards
    /// its packets.
    Single(RouteAction<RouteHop>),
    /// The numbers of several other objects, with weights.
    Group(Vec<(u32, u16)>),
}

/// The position of a new route among those of the same prefix and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Before the others.
    First,
    /// After the others.
    Last,
    /// In place of the first of them.
    Replace,
    /// Where it is, if it is known, as its next-hop object changed; else as [`Placement::Replace`].
    Updated,
    /// After those that the dump under way listed before it, and before those that it has not listed: a dump lists
    /// routes in the order in which the kernel tries them.
    Listed,
}

/// What the kernel lists by one dump request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpPart {
    /// Which links forward IPv4.
    Forwarding,
    /// Which links forward IPv6.
    Forwarding6,
    /// Rules of policy routing.
    Rules,
    /// Network interfaces.
    Links,
    /// Addresses of this host.
    Addresses,
    /// Neighbours of both families.
    Neighbors,
    /// Next-hop objects.
    Objects,
    /// IPv4 routes.
    Inet,
    /// IPv6 routes.
    Inet6,
}
