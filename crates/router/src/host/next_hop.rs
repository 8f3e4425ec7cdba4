//! Where packets go, as the host asks: by tables of its own ([`super::RouteTables`]), or by those of somebody else, who is
//! told which neighbours answer.

use std::net::IpAddr;
use std::time::Duration;

use fullview_table::NextHop;
use fullview_table::nexthop::TooManyNextHops;

use fullview_plane::wire::ethernet::Mac;

/// A station: the number of the interface whose link it is on, and its address.
pub type Key = (u16, IpAddr);

/// What a next hop stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// A station: a gateway, or a neighbour that has a route of its own.
    Station(u16, IpAddr),
    /// The stations of a link themselves.
    Link(u16),
    /// This router.
    Own,
    /// All stations of one of its networks.
    Broadcast,
    /// Nobody, without a word.
    Blackhole,
    /// Nobody.
    Unreachable,
    /// Nobody may go there.
    Prohibit,
}

/// An address that is to be reached.
#[derive(Clone, Copy, Debug)]
pub struct RouteQuery<'a> {
    /// The interface by whose table.
    pub interface: u16,
    /// The address.
    pub to: IpAddr,
    /// The IP packet it is asked for, whose flow decides between several ways; empty if there is none yet.
    pub packet: &'a [u8],
}

/// Where packets go.
pub trait NextHopResolver {
    /// Where an address leads.
    fn find(&self, wanted: RouteQuery<'_>) -> Option<Hop>;

    /// What a next hop stands for.
    fn hop(&self, number: NextHop) -> Option<Hop>;

    /// A neighbour's link address is known, or another one than before. `Err` if next hops have run out: its packets
    /// are punted then, one by one.
    fn known(&mut self, now: Duration, neighbor: Key, mac: Mac) -> Result<(), TooManyNextHops>;

    /// Nothing is known about a neighbour any more.
    fn unknown(&mut self, now: Duration, neighbor: Key);

    /// Does what is due.
    fn tick(&mut self, now: Duration);

    /// When [`NextHopResolver::tick`] has something to do.
    fn next_deadline(&self) -> Option<Duration>;
}
