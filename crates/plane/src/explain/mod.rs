//! Explains stage by stage why a packet goes where it goes.
//!
//! This is a second implementation of the forwarding path, written to be read: one packet, one step after another, from
//! the view and the FIBs. It uses no code of the loop (`forward`). Both use the views of bytes in `wire` and the flow
//! hash of the table. An explanation is compared with what the loop did ([`Explanation::disagreement`]); a test over
//! random frames and one over the boundaries of all special address blocks compare the two.

use std::net::IpAddr;

use fullview_table::group::flow_hash;
use fullview_table::{Address, NextHop};

use crate::adjacency::{Adjacency, MAX_MTU};

use crate::interface::{Interface, SourceCheck};
use crate::verdict::{Punt, Reason, Verdict};
use crate::view::View;
use crate::wire::ethernet::Mac;
use headers::{Headers, read};
pub use step::{RuleDecision, Step};

pub(crate) mod addresses;
mod headers;
mod program;
mod rules;
mod step;

/// Names of routes and next hops. The view and the FIBs hold numbers only.
pub trait RouteNames {
    /// The number that users know of the table at this index of the view.
    fn table(&self, place: u16) -> u32 {
        place.into()
    }
    /// The longest match among the routes of a table (by its index in the view): its prefix, and its next hop.
    fn route(&self, table: u16, addr: IpAddr) -> Option<(String, NextHop)>;
    /// The name of a next hop.
    fn next_hop(&self, hop: NextHop) -> Option<String>;
}

/// No names: steps show numbers only.
impl RouteNames for () {
    fn route(&self, _table: u16, _addr: IpAddr) -> Option<(String, NextHop)> {
        None
    }
    fn next_hop(&self, _hop: NextHop) -> Option<String> {
        None
    }
}

/// What becomes of a packet, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The verdict.
    pub verdict: Verdict,
    /// Of a forwarded packet: the egress port and the frame that leaves.
    pub departure: Option<(u16, Vec<u8>)>,
}

/// What the loop did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopOutcome<'a> {
    /// Its verdict.
    pub verdict: Verdict,
    /// Of a forwarded packet: the egress port and the frame.
    pub departure: Option<(u16, &'a [u8])>,
}

impl Explanation {
    /// How the outcome differs from the explanation, if it does. A full egress port is no disagreement.
    pub fn disagreement(&self, outcome: &LoopOutcome<'_>) -> Option<String> {
        let expected = self.verdict;
        if expected == Verdict::Forward && outcome.verdict == Verdict::Drop(Reason::EgressFull) {
            return None;
        }
        if outcome.verdict != expected {
            return Some(format!("the loop's verdict was {}, not {expected}", outcome.verdict));
        }
        let (port, frame) = self.departure.as_ref()?;
        match outcome.departure {
            Some((by, _)) if by != *port => Some(format!("it left by port {by}, not {port}")),
            Some((_, sent)) if sent != frame => Some(format!("it left as {}, not {}", hex(sent), hex(frame))),
            Some(_) => None,
            None => Some("the loop did not send it".into()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Explains what becomes of `frame` when `port` receives it.
pub fn explain(view: &View, names: &dyn RouteNames, port: u16, frame: &[u8]) -> Explanation {
    let mut path = Path { view, names, steps: Vec::new() };
    let (verdict, departure) = match path.walk(port, frame) {
        Ok(departure) => (Verdict::Forward, Some(departure)),
        Err(verdict) => (verdict, None),
    };
    if verdict != Verdict::Forward {
        path.steps.push(Step::Rejected(verdict));
    }
    Explanation { steps: path.steps, verdict, departure }
}

/// The steps of one packet so far.
struct Path<'a> {
    view: &'a View,
    names: &'a dyn RouteNames,
    steps: Vec<Step>,
}

/// Egress port and frame.
type Departure = (u16, Vec<u8>);

impl<'a> Path<'a> {
    fn walk(&mut self, port: u16, frame: &[u8]) -> Result<Departure, Verdict> {
        let (number, interface) = self.arrive(port, frame)?;
        let headers = read(frame, interface, self.view.parts().policy)?;
        self.steps.push(Step::Headers(headers.clone()));
        if headers.has_router_options {
            return Err(self.with_options(number, interface, &headers));
        }
        if headers.mac.is_group() {
            let found = self.look_up(interface.table, headers.destination);
            return Err(in_group_frame(self.view.parts().adjacencies.get(found)));
        }
        let table = self.choose_table(interface, &headers)?;
        let found = self.look_up(table, headers.destination);
        let hop = self.pick(found, &headers);
        self.check_source(number, interface, &headers)?;
        self.leave(hop, &headers, frame)
    }

    /// The verdict on a packet with options that every router on the path examines.
    fn with_options(&mut self, number: u16, interface: &Interface, headers: &Headers) -> Verdict {
        let has_rules = !interface.rules.of(headers.family()).is_empty();
        if has_rules && interface.source_check != SourceCheck::Off {
            return Verdict::Punt(Punt::WayBack);
        }
        let checked = self.check_source(number, interface, headers);
        checked.err().unwrap_or(Verdict::Punt(Punt::Options))
    }

    /// Finds the ingress interface.
    fn arrive(&mut self, port: u16, frame: &[u8]) -> Result<(u16, &'a Interface), Verdict> {
        let (view, bytes) = (self.view, frame.len());
        let whole = headers::ethernet(frame).ok_or(Verdict::Drop(Reason::TooShort))?;
        let at = view.port(port).ok_or(Verdict::Drop(Reason::UnknownPort))?;
        let vlan = whole.vlan().unwrap_or(0);
        let number = at.interface(vlan).ok_or(Verdict::Punt(Punt::OtherVlan))?;
        let interface = view.interface(number).ok_or(Verdict::Drop(Reason::UnknownPort))?;
        self.steps.push(Step::Received { interface: interface.name.clone(), vlan, bytes });
        let destination = whole.destination();
        if !interface.up {
            return Err(Verdict::Drop(Reason::InterfaceDown));
        }
        if destination != interface.mac && !destination.is_group() {
            return Err(Verdict::Drop(Reason::NotOurMac));
        }
        Ok((number, interface))
    }

    /// Looks an address up in a table, with the name of the route if it is known.
    fn look_up(&mut self, table: u16, addr: IpAddr) -> NextHop {
        let hop = self.next_hop(table, addr);
        let route = self.names.route(table, addr);
        let is_stale = route.as_ref().is_some_and(|(_, of_route)| *of_route != hop);
        let prefix = route.map(|(prefix, _)| prefix);
        let name = self.names.next_hop(hop);
        let table = self.names.table(table);
        self.steps.push(Step::Lookup { table, addr, prefix, hop, name, is_stale });
        hop
    }

    fn next_hop(&self, table: u16, addr: IpAddr) -> NextHop {
        let Some(readers) = self.view.parts().tables.get(usize::from(table)) else { return NextHop::NONE };
        match addr {
            IpAddr::V4(ip) => readers.inet.with(|fib| fib.lookup(u32::from_ip(ip))),
            IpAddr::V6(ip) => readers.inet6.with(|fib| fib.lookup(u128::from_ip(ip))),
        }
    }

    /// The member of a group that the packet's flow uses; a next hop that is no group stays as it is.
    fn pick(&mut self, found: NextHop, headers: &Headers) -> NextHop {
        let mut reader = self.view.parts().groups.reader();
        let groups = reader.groups();
        if !groups.is_group(found) {
            return found;
        }
        let (protocol, ports) = headers.flow;
        let addresses = [headers.source, headers.destination].map(headers::widened);
        let seed = self.view.parts().policy.flow_hash.seed;
        let hash = flow_hash(seed, addresses[0], addresses[1], protocol, ports);
        let hop = self.view.member(groups, found, hash);
        let members = distinct(groups.members(found));
        let number = members.iter().position(|member| *member == hop).map_or(0, |place| place + 1);
        self.steps.push(Step::Member { group: found, number, of: members.len(), hash, hop });
        hop
    }

    /// Reverse path forwarding (RFC 3704).
    fn check_source(
        &mut self,
        came_in: u16,
        interface: &Interface,
        headers: &Headers,
    ) -> Result<(), Verdict> {
        use SourceCheck::{Loose, Off, Strict};
        let check = interface.source_check;
        if check == Off {
            return Ok(());
        }
        let back = self.next_hop(interface.table, headers.source);
        let mut reader = self.view.parts().groups.reader();
        let hops: Vec<NextHop> = reader.groups().members(back).iter().copied().chain([back]).collect();
        let adjacencies = hops.into_iter().filter_map(|hop| self.view.parts().adjacencies.get(hop));
        let is_kernels = adjacencies.clone().any(|adjacency| matches!(adjacency, Adjacency::Local));
        let mut links = adjacencies.filter_map(link_of);
        let passes = match check {
            Off => true,
            Loose => back.is_some() && links.next().is_some(),
            Strict => links.any(|link| link == came_in),
        };
        self.steps.push(Step::SourceCheck { check, source: headers.source, back, passes });
        match passes {
            true => Ok(()),
            false if is_kernels => Err(Verdict::Punt(Punt::WayBack)),
            false => Err(Verdict::Drop(Reason::SourceCheck)),
        }
    }

    /// Applies the adjacency of the next hop, and returns the rewritten frame.
    fn leave(&mut self, hop: NextHop, headers: &Headers, frame: &[u8]) -> Result<Departure, Verdict> {
        if !hop.is_some() {
            return Err(Verdict::Drop(Reason::NoRoute));
        }
        let adjacency = self.view.parts().adjacencies.get(hop);
        self.steps.push(Step::NextHop { hop, leads: describe_adjacency(self.view, adjacency) });
        let (number, mac) = self.neighbor(adjacency, headers)?;
        let interface = self.view.interface(number).ok_or(Verdict::Drop(Reason::NoAdjacency))?;
        check_hops(headers)?;
        let mtu = interface.mtu_of(headers.family()).min(MAX_MTU.into());
        self.steps.push(Step::Length { bytes: headers.total_len, mtu });
        if headers.total_len > mtu as usize {
            return Err(Verdict::Drop(too_long(headers)));
        }
        self.steps.push(Step::Hops { before: headers.hops, after: headers.hops - 1 });
        let sent = headers::rewritten(frame, headers, interface.mac, mac, interface.vlan);
        self.steps.push(Step::Sent { interface: interface.name.clone(), mac, bytes: sent.len() });
        Ok((interface.port, sent))
    }

    /// The neighbour to send to; the error is the verdict of another adjacency.
    fn neighbor(&self, adjacency: Option<Adjacency>, headers: &Headers) -> Result<(u16, Mac), Verdict> {
        let link = adjacency.and_then(link_of).and_then(|number| self.view.interface(number));
        if link.is_some_and(|interface| !interface.up) {
            return Err(Verdict::Drop(Reason::InterfaceDown));
        }
        match adjacency {
            Some(Adjacency::Neighbor { interface, mac }) => Ok((interface, mac)),
            Some(Adjacency::Glean { .. }) => check_hops(headers).and(Err(Verdict::Punt(Punt::Glean))),
            None => check_hops(headers).and(Err(Verdict::Drop(Reason::NoAdjacency))),
            Some(Adjacency::Local) => Err(Verdict::Punt(Punt::Local)),
            Some(Adjacency::Broadcast) => Err(Verdict::Drop(Reason::DirectedBroadcast)),
            Some(Adjacency::Blackhole) => Err(Verdict::Drop(Reason::Blackhole)),
            Some(Adjacency::Unreachable) => Err(Verdict::Drop(Reason::Unreachable)),
            Some(Adjacency::Prohibit) => Err(Verdict::Drop(Reason::Prohibited)),
        }
    }
}

/// Describes an adjacency in words.
pub fn describe_adjacency(view: &View, adjacency: Option<Adjacency>) -> String {
    let name =
        |number: u16| view.interface(number).map_or("no interface", |interface| interface.name.as_str());
    match adjacency {
        Some(Adjacency::Neighbor { interface, mac }) => format!("neighbour {mac} on {}", name(interface)),
        Some(Adjacency::Glean { interface }) => format!("a station on {} not known yet", name(interface)),
        Some(Adjacency::Local) => "this router".into(),
        Some(Adjacency::Broadcast) => "all stations of a network".into(),
        Some(Adjacency::Blackhole) => "blackhole".into(),
        Some(Adjacency::Unreachable) => "unreachable".into(),
        Some(Adjacency::Prohibit) => "prohibited".into(),
        None => "nothing known".into(),
    }
}

/// The interface of a neighbour or a connected network.
fn link_of(adjacency: Adjacency) -> Option<u16> {
    match adjacency {
        Adjacency::Neighbor { interface, .. } | Adjacency::Glean { interface } => Some(interface),
        _ => None,
    }
}

/// A unicast packet in a broadcast or multicast frame is never forwarded (RFC 1812, section 5.3.4).
fn in_group_frame(adjacency: Option<Adjacency>) -> Verdict {
    match adjacency {
        Some(Adjacency::Local) => Verdict::Punt(Punt::Local),
        Some(Adjacency::Broadcast) => Verdict::Punt(Punt::Broadcast),
        _ => Verdict::Drop(Reason::LinkBroadcast),
    }
}

fn check_hops(headers: &Headers) -> Result<(), Verdict> {
    match headers.destination {
        _ if headers.hops > 1 => Ok(()),
        IpAddr::V4(_) => Err(Verdict::Drop(Reason::TtlExpired)),
        IpAddr::V6(_) => Err(Verdict::Drop(Reason::HopLimitExpired)),
    }
}

fn too_long(headers: &Headers) -> Reason {
    if headers.may_be_fragmented { Reason::NeedsFragments } else { Reason::TooBig }
}

/// The distinct members in ascending order.
fn distinct(slots: &[NextHop]) -> Vec<NextHop> {
    let mut members = slots.to_vec();
    members.sort_unstable();
    members.dedup();
    members
}
