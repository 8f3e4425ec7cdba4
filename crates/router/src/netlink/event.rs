//! What the kernel says, decoded: links, addresses, neighbours, routes, next-hop objects, rules.

use std::net::IpAddr;

use fullview_table::{Family, Prefix};

use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;

use super::uapi;

/// The kernel's number of a link.
pub type LinkIndex = u32;

/// Stands for all links; no link has it.
pub const ALL_LINKS: LinkIndex = 0;

/// One thing that is so, or is no longer so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link is there, or is otherwise than before.
    Link(Link),
    /// A link is gone.
    LinkGone(LinkIndex),
    /// An address of this host came.
    Address(LinkIndex, InterfaceAddress),
    /// An address of this host went.
    AddressGone(LinkIndex, InterfaceAddress),
    /// What is known about a neighbour.
    Neighbor(Neighbor),
    /// A neighbour is forgotten.
    NeighborGone(LinkIndex, IpAddr),
    /// A route came.
    Route(Route, Placement),
    /// A route went.
    RouteGone(Route),
    /// A next-hop object came, or is otherwise than before.
    NextHop(u32, Object),
    /// A next-hop object is gone, and with it the routes that used it.
    NextHopGone(u32),
    /// Whether packets of a family that come in by a link are forwarded (sysctl `forwarding`), or any at all
    /// ([`ALL_LINKS`]).
    Forwarding(LinkIndex, Family, bool),
    /// A rule of policy routing is there.
    Rule(Rule),
    /// A rule of policy routing is gone.
    RuleGone(Rule),
}

/// A rule of policy routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whose packets it is for.
    pub family: Family,
    /// Rules are asked in the order of this, the lowest first.
    pub priority: u32,
    /// It is for packets only that came in by this link, or by one of this VRF.
    pub interface: Option<String>,
    /// Where it leads.
    pub leads: Leads,
    /// What tells it from others.
    pub name: Vec<u8>,
}

/// Where a rule leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// All packets that it is for, to this table.
    To(u32),
    /// Those that came in by interfaces of a VRF, to the table of it.
    ToVrf,
    /// Some of them, or to something else, or in a way that is not known.
    Elsewhere,
}

/// A network interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: LinkIndex,
    /// Its name.
    pub name: String,
    /// Its Ethernet address; zeros if it is no Ethernet link.
    pub mac: Mac,
    /// The longest IP packet it takes.
    pub mtu: u32,
    /// The longest of IPv6, if somebody wants less (sysctl `net.ipv6.conf.NAME.mtu`).
    pub mtu6: Option<u32>,
    /// Somebody set it up.
    pub up: bool,
    /// And it has a carrier.
    pub carrier: bool,
    /// What it is.
    pub kind: LinkKind,
    /// The link it is a part of: a VRF, a bridge.
    pub master: Option<LinkIndex>,
}

/// What a link is, as far as that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The frames of one VLAN (IEEE 802.1Q) on another link.
    Vlan {
        /// 1 to 4094.
        id: u16,
        /// On which.
        parent: LinkIndex,
    },
    /// A VRF, whose members look up in this table.
    Vrf {
        /// The kernel's number of it.
        table: u32,
    },
    /// Anything else.
    Other,
}

/// A neighbour's address on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Which link.
    pub link: LinkIndex,
    /// Its IP address.
    pub address: IpAddr,
    /// Its Ethernet address, if it is known.
    pub mac: Option<Mac>,
    /// What the kernel thinks of it.
    pub state: NeighborState,
}

/// The `NUD_` flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborState(pub u16);

impl NeighborState {
    /// Known for good, as far as whoever says so is concerned.
    pub const PERMANENT: NeighborState = NeighborState(uapi::NUD_PERMANENT);

    /// Whether frames may be sent to its address.
    pub fn is_usable(self) -> bool {
        const USABLE: u16 =
            uapi::NUD_REACHABLE | uapi::NUD_STALE | uapi::NUD_DELAY | uapi::NUD_PROBE | uapi::NUD_PERMANENT;
        self.0 & USABLE != 0
    }

    /// Whether the kernel would verify the address if it were used.
    pub fn is_stale(self) -> bool {
        self.0 & uapi::NUD_STALE != 0
    }
}

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyPrefix {
    /// IPv4.
    Inet(Prefix<u32>),
    /// IPv6.
    Inet6(Prefix<u128>),
}

/// [`Route::protocol`] of what follows from the addresses of interfaces.
pub const BY_INTERFACE: u8 = uapi::RTPROT_KERNEL;
/// [`Route::protocol`] of what somebody typed.
pub const BY_HAND: u8 = uapi::RTPROT_STATIC;
/// The number of the table that packets of most interfaces are looked up in.
pub const MAIN_TABLE: u32 = uapi::RT_TABLE_MAIN;

/// A route of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// In which of the kernel's tables.
    pub table: u32,
    /// To where.
    pub prefix: AnyPrefix,
    /// Of several routes to one prefix the lowest metric wins.
    pub metric: u32,
    /// It holds only for some packets to the prefix: those from certain sources, or with certain TOS bits.
    pub selective: Option<Selector>,
    /// Who made it (`RTPROT_`).
    pub protocol: u8,
    /// What is done with packets.
    pub action: Action,
}

/// What else packets must have for a route to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// TOS bits.
    pub tos: u8,
    /// The length of the source prefix.
    pub source: u8,
}

/// What a route does with packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends them on by one of these.
    Forward(Vec<Hop>),
    /// Sends them on by a next-hop object.
    Object(u32),
    /// The same, within an MTU of the route's own, which other routes by this object do not have.
    ObjectWithMtu(u32),
    /// They are for this host, or not for us to judge.
    Local,
    /// They are for all stations of a connected network.
    Broadcast,
    /// Drops them without a word.
    Blackhole,
    /// Drops them and says so: host unreachable.
    Unreachable,
    /// Drops them and says so: administratively prohibited.
    Prohibit,
    /// Looks no further in this table.
    Throw,
}

/// One way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hop {
    /// By which link; 0 is none.
    pub link: LinkIndex,
    /// To which router; `None` if the destination itself is on the link.
    pub gateway: Option<IpAddr>,
    /// The longest packet that may be sent this way, if the route says so.
    pub mtu: Option<u32>,
    /// Its share of the flows, relative to the others'.
    pub weight: u16,
    /// The kernel does not use it now.
    pub dead: bool,
    /// It needs a header that the forwarding path does not write: MPLS, a tunnel.
    pub encapsulated: bool,
}

/// A next-hop object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// One way out.
    Hop(Hop),
    /// A black hole.
    Blackhole,
    /// Several others, with weights.
    Group(Vec<(u32, u16)>),
    /// Something that the forwarding path cannot follow.
    Foreign,
}

/// Where a route goes among those of the same prefix and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Before them.
    First,
    /// After them.
    Last,
    /// Instead of the first of them.
    Replace,
}

/// What can be dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
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
