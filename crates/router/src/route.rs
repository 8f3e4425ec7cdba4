//! Routes as the control plane has them, whether the kernel reports them or a configuration lists them: the prefix,
//! what is done with packets, and the next hops.

use std::convert::Infallible;
use std::net::IpAddr;

use fullview_table::Prefix;

/// The kernel's number of a link. A router without a kernel numbers its links itself.
pub type LinkIndex = u32;

/// The table in which packets of most interfaces are looked up.
pub const MAIN_TABLE: u32 = 254;

/// The table of the host's own addresses, which the kernel consults before any other.
pub const LOCAL_TABLE: u32 = 255;

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyPrefix {
    /// IPv4.
    Inet(Prefix<u32>),
    /// IPv6.
    Inet6(Prefix<u128>),
}

impl AnyPrefix {
    /// The prefix that holds only this address.
    pub fn host(ip: IpAddr) -> AnyPrefix {
        match ip {
            IpAddr::V4(ip) => AnyPrefix::Inet(Prefix::host(ip.to_bits())),
            IpAddr::V6(ip) => AnyPrefix::Inet6(Prefix::host(ip.to_bits())),
        }
    }
}

/// What is done with the packets that a route or a next hop takes: the route types of `ip-route(8)`.
///
/// `N` is how the current stage names the next hops: gateways in a configuration and in netlink messages
/// ([`HopSet`]), the number of a set in the mirror's tables, one [`NextHopVia`] behind a next-hop index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteAction<N> {
    /// Sends them to a next hop.
    Forward(N),
    /// Delivers them to this host, or hands them to the kernel because only the kernel can forward them.
    Local,
    /// Treats them as broadcasts of a connected network.
    Broadcast,
    /// Drops them silently.
    Blackhole,
    /// Drops them and answers "host unreachable".
    Unreachable,
    /// Drops them and answers "administratively prohibited".
    Prohibit,
    /// Ends the lookup in this table as if it had no route.
    Throw,
}

impl RouteAction<HopSet> {
    /// Shares flows among these hops.
    pub fn via(hops: impl Into<Box<[RouteHop]>>) -> RouteAction<HopSet> {
        RouteAction::Forward(HopSet::Hops(hops.into()))
    }
}

impl<N> RouteAction<N> {
    /// Names the next hops as the following stage does.
    pub fn map<M>(self, rename: impl FnOnce(N) -> M) -> RouteAction<M> {
        let Ok(renamed) = self.try_map(|next_hop| Ok::<M, Infallible>(rename(next_hop)));
        renamed
    }

    /// The same, where the following stage may lack a name.
    pub fn try_map<M, E>(self, rename: impl FnOnce(N) -> Result<M, E>) -> Result<RouteAction<M>, E> {
        Ok(match self {
            RouteAction::Forward(next_hop) => RouteAction::Forward(rename(next_hop)?),
            RouteAction::Local => RouteAction::Local,
            RouteAction::Broadcast => RouteAction::Broadcast,
            RouteAction::Blackhole => RouteAction::Blackhole,
            RouteAction::Unreachable => RouteAction::Unreachable,
            RouteAction::Prohibit => RouteAction::Prohibit,
            RouteAction::Throw => RouteAction::Throw,
        })
    }
}

/// The next hops that a route names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HopSet {
    /// These; flows are shared among them by weight.
    Hops(Box<[RouteHop]>),
    /// Those of a next-hop object.
    Object(u32),
    /// Those of a next-hop object, for packets up to an MTU of this route only.
    ObjectWithMtu(u32),
}

impl HopSet {
    /// The hops that are listed one by one; none for a next-hop object.
    pub fn hops(&self) -> &[RouteHop] {
        match self {
            HopSet::Hops(hops) => hops,
            HopSet::Object(_) | HopSet::ObjectWithMtu(_) => &[],
        }
    }
}

/// One of the next hops that a route names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteHop {
    /// The link to leave by; 0 is none.
    pub link: LinkIndex,
    /// The router to send to; `None` if the destinations themselves are on the link.
    pub gateway: Option<IpAddr>,
    /// The longest packet that may be sent this way, if the route sets it.
    pub mtu: Option<u32>,
    /// Its part of the flows, relative to the other hops of the route.
    pub weight: u16,
    /// The kernel does not use it now.
    pub dead: bool,
    /// It needs a header that the forwarding path does not write: MPLS, a tunnel.
    pub encapsulated: bool,
}

impl RouteHop {
    /// A hop without restrictions.
    pub fn new(link: LinkIndex, gateway: Option<IpAddr>, weight: u16) -> RouteHop {
        RouteHop { link, gateway, mtu: None, weight, dead: false, encapsulated: false }
    }
}

/// A next hop before its link address is known. `L` numbers the link: a [`LinkIndex`] in the control plane, the number
/// of an interface where packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHopVia<L> {
    /// The link to leave by.
    pub link: L,
    /// The gateway or neighbour to send to; `None` if the destination of each packet is itself on the link.
    pub neighbor: Option<IpAddr>,
}
