//! The stations around a router in a network namespace: one cable (a veth pair) to each side.
//!
//! The output for a frame is complete when a marker sent after the frame has come out on every side: each cable keeps
//! the order, and the sending thread stays on one processor, so that the kernel's queue keeps the order too.

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_testnet::{Node, PacketSocket};

use crate::dut::Output;
use crate::frames::{Inet, Inet6};
use crate::topology::{self, LEFT, RIGHT, SIDES, STATION, router_mac, station_mac};

/// The limit for what takes microseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The beginning of a marker's payload. The side that the marker is for and its number follow.
const MARKER: &[u8] = b"end of what came before";

/// An address without a route.
const NOWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xfe, 0, 0, 0, 1);

/// The path of a marker to its side.
#[derive(Clone, Copy)]
pub enum MarkerPath {
    /// The router forwards it from another side.
    Forwarded,
    /// The side sends it to an address without a route; it returns in the error.
    Answered,
}

/// A router and its stations, each in a namespace, with a cable to each station. The router's interfaces have the names of
/// the sides.
pub struct Testbed {
    pub router: Node,
    sockets: Vec<PacketSocket>,
    /// The stations, which exist as long as the test bed.
    #[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "only held"))]
    hosts: Vec<Node>,
    markers: u64,
    /// The paths of the markers that are sent one after the other; after the last one, all earlier output is complete.
    paths: &'static [MarkerPath],
}

impl Testbed {
    /// Makes the nodes and cables. The router's parameters below /proc/sys/net are set before its interfaces are made,
    /// which are still down and without addresses.
    pub fn new(settings: &[(&str, &str)]) -> Testbed {
        let router = Node::bare();
        settings.iter().for_each(|(name, value)| router.sysctl(name, value));
        Testbed::around(router, plug)
    }

    /// Makes the stations around a router. `plug` gives each station an interface `station`.
    pub fn around(router: Node, plug: impl Fn(&Node, &Node, usize, &topology::Side)) -> Testbed {
        let mut hosts = Vec::new();
        for side in &SIDES {
            let host = Node::bare();
            host.sysctl("ipv6/conf/default/disable_ipv6", "1");
            plug(&router, &host, hosts.len(), side);
            hosts.push(host);
        }
        let sockets = hosts.iter().map(|host| host.packet_socket("station")).collect();
        pin();
        Testbed { router, sockets, hosts, markers: 0, paths: &[MarkerPath::Forwarded] }
    }

    /// Waits until the router forwards between all sides.
    pub fn wait_until_up(&mut self) {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.markers_return(Duration::from_millis(50)) {
                return;
            }
        }
        panic!("the router does not forward from every side to every other");
    }

    /// Sends markers on these paths from now on before it takes the output to be complete.
    pub fn send_markers_by(&mut self, paths: &'static [MarkerPath]) {
        self.paths = paths;
    }

    /// Makes the stations accept frames that an XDP program redirects to them.
    #[cfg(feature = "bpf")]
    pub fn accept_redirected_frames(&self) {
        self.hosts.iter().for_each(|host| host.accept_redirected_frames("station"));
    }

    /// Makes the router's interfaces leave VLAN tags in the frames, as AF_XDP sockets need it.
    #[cfg(feature = "bpf")]
    pub fn keep_tags(&self) {
        SIDES.iter().for_each(|side| self.router.keep_tags(side.name));
    }

    /// Does what [`crate::dut::Dut::exchange`] specifies.
    pub fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.send(side, frame);
        self.collect([0; SIDES.len()])
    }

    /// Receives at least as many frames as `awaited` says; then sends markers, and receives what precedes them.
    pub fn collect(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        let mut output = Output::default();
        for (side, count) in awaited.into_iter().enumerate() {
            let deadline = Instant::now() + PATIENCE;
            while output.0[side].len() < count && Instant::now() < deadline {
                let received = self.sockets[side].receive(deadline);
                output.0[side]
                    .extend(received.filter(|frame| !is_noise(frame) && marker_of(frame).is_none()));
            }
        }
        for path in self.paths {
            self.send_markers(*path);
            for (number, side) in SIDES.iter().enumerate() {
                assert!(self.drain(number, &mut output, PATIENCE), "no marker on side {}", side.name);
            }
        }
        output
    }

    fn send(&mut self, side: usize, frame: &[u8]) {
        self.sockets[side].send(frame).unwrap_or_else(|error| panic!("sending on side {side}: {error}"));
    }

    fn send_markers(&mut self, path: MarkerPath) {
        self.markers += 1;
        for side in 0..SIDES.len() {
            let payload = [MARKER, &[side as u8], &self.markers.to_be_bytes()].concat();
            let (from, marker) = match path {
                MarkerPath::Forwarded => through(side, payload),
                MarkerPath::Answered => (side, without_route(side, payload)),
            };
            self.send(from, &marker);
        }
    }

    /// Receives frames on a side until the marker arrives. Returns whether it arrived.
    fn drain(&mut self, side: usize, output: &mut Output, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while let Some(frame) = self.sockets[side].receive(deadline) {
            match marker_of(&frame) {
                Some(marker) if marker == (side as u8, self.markers) => return true,
                None if !is_noise(&frame) => output.0[side].push(frame),
                _ => {}
            }
        }
        false
    }

    fn markers_return(&mut self, patience: Duration) -> bool {
        self.send_markers(MarkerPath::Forwarded);
        // This drains every side, so that no side has old markers left.
        let returned: Vec<_> =
            (0..SIDES.len()).map(|side| self.drain(side, &mut Output::default(), patience)).collect();
        returned.into_iter().all(|returned| returned)
    }
}

/// Joins the router and a station by a cable. The station accepts longer frames than the router sends: on a veth pair, the
/// kernel would otherwise drop them before the router can see them.
fn plug(router: &Node, host: &Node, side: usize, link: &topology::Side) {
    let (name, mtu, mac, peer) = (link.name, link.mtu, router_mac(side), station_mac(side));
    router.ip(&format!(
        "link add {name} mtu {mtu} address {mac} type veth peer name station mtu 2000 address {peer} netns {}",
        host.id()
    ));
    host.ip("link set station up");
}

fn pin() {
    if let Some(core) = core_affinity::get_core_ids().and_then(|cores| cores.first().copied()) {
        core_affinity::set_for_current(core);
    }
}

/// Returns a marker for a side and, first, the other side that sends it.
fn through(side: usize, payload: Vec<u8>) -> (usize, Vec<u8>) {
    let from = if side == LEFT { RIGHT } else { LEFT };
    let packet = Inet::udp([198, 18, 255, 254].into(), topology::inet(side, STATION));
    (from, packet.payload(payload).frame_from(from))
}

/// Returns a marker that the router answers with an error. It is IPv6: the kernel does not count these errors by their
/// receivers to limit them.
fn without_route(side: usize, payload: Vec<u8>) -> Vec<u8> {
    Inet6::udp(topology::inet6(side, STATION.into()), NOWHERE).payload(payload).frame_from(side)
}

/// Returns the side that a marker is for, and its number.
fn marker_of(frame: &[u8]) -> Option<(u8, u64)> {
    let at = frame.windows(MARKER.len()).position(|window| window == MARKER)?;
    let (side, number) = frame[at + MARKER.len()..].split_first()?;
    Some((*side, u64::from_be_bytes(number.get(..8)?.try_into().ok()?)))
}

/// Returns whether a frame is a report of group membership, which a kernel repeats at any time.
fn is_noise(frame: &[u8]) -> bool {
    const HOP_BY_HOP: u8 = 0;
    const IGMP: u8 = 2;
    const REPORTS: [u8; 3] = [131, 132, 143];
    let Ok(frame) = Frame::new_checked(frame) else { return false };
    match frame.ethertype() {
        EtherType::IPV4 => Ipv4Packet::new_checked(frame.payload()).is_ok_and(|ip| ip.protocol() == IGMP),
        EtherType::IPV6 => Ipv6Packet::new_checked(frame.payload()).is_ok_and(|ip| {
            let kind = ip.payload().get(8);
            ip.next_header() == HOP_BY_HOP
                && kind.is_some_and(|kind| REPORTS.contains(kind))
                && ip.destination() >> 120 == 0xff
        }),
        _ => false,
    }
}
