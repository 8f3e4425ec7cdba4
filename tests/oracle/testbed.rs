//! The stations around a router in a network namespace: one cable (a veth pair) to each side.
//!
//! What the router makes of a frame is known to be complete when a marker that was sent after it has come out on every
//! side: each cable keeps the order, and the sending thread stays on one processor, so that the kernel's queue does
//! too.

use std::io;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use fullview_plane::wire::ethernet::{EtherType, Frame};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use pnet_datalink::{Channel, Config, DataLinkReceiver, DataLinkSender, channel, interfaces};

use crate::dut::Output;
use crate::frames::{Inet, Inet6};
use crate::namespace::Namespace;
use crate::topology::{self, LEFT, RIGHT, SIDES, STATION, router_mac, station_mac};

/// How long something may take that takes microseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How the payload of a marker begins; the side it is for and its number follow.
const MARKER: &[u8] = b"end of what came before";

/// Where no route leads.
const NOWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0xfe, 0, 0, 0, 1);

/// How a marker comes to its side.
#[derive(Clone, Copy)]
pub enum Way {
    /// From another side.
    Forwarded,
    /// From the side itself, in the error that says that there is no route.
    Answered,
}

/// One station's socket.
struct Station {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
}

/// Namespaces, cables and stations. The router's interfaces have the names of the sides.
pub struct Testbed {
    pub router: Namespace,
    stations: Vec<Station>,
    /// The stations' namespaces, which live as long as the test bed.
    #[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "only held"))]
    hosts: Vec<Namespace>,
    markers: u64,
    /// How markers go, one after the other, until all that was before them is out.
    ways: &'static [Way],
}

impl Testbed {
    /// Namespaces and cables. The router's variables below /proc/sys/net are set before its interfaces are made, which
    /// are still down and without addresses.
    pub fn new(settings: &[(&str, &str)]) -> io::Result<Testbed> {
        let router = Namespace::new()?;
        settings.iter().for_each(|(name, value)| router.sysctl(name, value));
        Testbed::around(router, plug)
    }

    /// The stations around a router, each of which `plug` gives an interface `station`.
    pub fn around(
        router: Namespace,
        plug: impl Fn(&Namespace, &Namespace, usize, &topology::Side),
    ) -> io::Result<Testbed> {
        let mut hosts = Vec::new();
        for side in &SIDES {
            let host = Namespace::new()?;
            host.sysctl("ipv6/conf/default/disable_ipv6", "1");
            plug(&router, &host, hosts.len(), side);
            hosts.push(host);
        }
        let stations = hosts.iter().map(station).collect();
        pin();
        Ok(Testbed { router, stations, hosts, markers: 0, ways: &[Way::Forwarded] })
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

    /// Has markers follow these ways before all is taken to be out.
    pub fn settle_by(&mut self, ways: &'static [Way]) {
        self.ways = ways;
    }

    /// Has the stations take frames that an XDP program sends: a veth device does so only by NAPI.
    #[cfg(feature = "bpf")]
    pub fn take_redirected(&self) {
        for host in &self.hosts {
            host.command("ethtool -K station gro on");
        }
    }

    /// Has the router's interfaces leave VLAN tags where they stand: AF_XDP sockets see no others.
    #[cfg(feature = "bpf")]
    pub fn leave_tags(&self) {
        SIDES
            .iter()
            .for_each(|side| _ = self.router.command(&format!("ethtool -K {} rxvlan off", side.name)));
    }

    /// As [`crate::dut::Dut::exchange`].
    pub fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.send(side, frame);
        self.collect([0; SIDES.len()])
    }

    /// Receives at least as many frames as awaited, and whatever precedes the markers sent then.
    pub fn collect(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        let mut output = Output::default();
        for (side, count) in awaited.into_iter().enumerate() {
            let deadline = Instant::now() + PATIENCE;
            while output.0[side].len() < count && Instant::now() < deadline {
                let received = self.stations[side].receive(deadline);
                output.0[side]
                    .extend(received.filter(|frame| !is_noise(frame) && marker_of(frame).is_none()));
            }
        }
        for way in self.ways {
            self.send_markers(*way);
            for (number, side) in SIDES.iter().enumerate() {
                assert!(self.drain(number, &mut output, PATIENCE), "no marker on side {}", side.name);
            }
        }
        output
    }

    fn send(&mut self, side: usize, frame: &[u8]) {
        let sent = self.stations[side].sender.send_to(frame, None);
        sent.expect("there is a link").unwrap_or_else(|error| panic!("sending on side {side}: {error}"));
    }

    fn send_markers(&mut self, way: Way) {
        self.markers += 1;
        for side in 0..SIDES.len() {
            let payload = [MARKER, &[side as u8], &self.markers.to_be_bytes()].concat();
            let (from, marker) = match way {
                Way::Forwarded => through(side, payload),
                Way::Answered => (side, without_route(side, payload)),
            };
            self.send(from, &marker);
        }
    }

    /// Adds what comes in on a side until the marker does; whether it did.
    fn drain(&mut self, side: usize, output: &mut Output, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while let Some(frame) = self.stations[side].receive(deadline) {
            match marker_of(&frame) {
                Some(marker) if marker == (side as u8, self.markers) => return true,
                None if !is_noise(&frame) => output.0[side].push(frame),
                _ => {}
            }
        }
        false
    }

    fn markers_return(&mut self, patience: Duration) -> bool {
        self.send_markers(Way::Forwarded);
        // All sides, so that none has old markers left.
        let returned: Vec<_> =
            (0..SIDES.len()).map(|side| self.drain(side, &mut Output::default(), patience)).collect();
        returned.into_iter().all(|returned| returned)
    }
}

impl Station {
    fn receive(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            match self.receiver.next() {
                Ok(frame) => return Some(frame.to_vec()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut && Instant::now() < deadline => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return None,
                Err(error) => panic!("receiving: {error}"),
            }
        }
    }
}

/// A cable between the router and a station, which takes longer frames than the router sends.
fn plug(router: &Namespace, host: &Namespace, side: usize, link: &topology::Side) {
    let (name, mtu, mac, peer) = (link.name, link.mtu, router_mac(side), station_mac(side));
    router.ip(&format!(
        "link add {name} mtu {mtu} address {mac} type veth peer name station mtu 2000 address {peer} netns {}",
        host.number()
    ));
    // The kernel would drop longer frames than its own MTU on a cable; a router has to see them.
    host.ip("link set station up");
}

fn station(host: &Namespace) -> Station {
    let name = "station";
    host.run(move || {
        let interface = interfaces().into_iter().find(|interface| interface.name == name);
        let interface = interface.unwrap_or_else(|| panic!("{name} was just made"));
        let config = Config { read_timeout: Some(Duration::from_millis(20)), ..Config::default() };
        match channel(&interface, config) {
            Ok(Channel::Ethernet(sender, receiver)) => Station { sender, receiver },
            Ok(_) => panic!("{name} is not Ethernet"),
            Err(error) => panic!("a socket on {name}: {error}"),
        }
    })
}

fn pin() {
    if let Some(core) = core_affinity::get_core_ids().and_then(|cores| cores.first().copied()) {
        core_affinity::set_for_current(core);
    }
}

/// To a side from another one, which comes first.
fn through(side: usize, payload: Vec<u8>) -> (usize, Vec<u8>) {
    let from = if side == LEFT { RIGHT } else { LEFT };
    let packet = Inet::udp([198, 18, 255, 254].into(), topology::inet(side, STATION));
    (from, packet.payload(payload).frame_from(from))
}

/// IPv6, of whose errors the kernel counts none by their addressees.
fn without_route(side: usize, payload: Vec<u8>) -> Vec<u8> {
    Inet6::udp(topology::inet6(side, STATION.into()), NOWHERE).payload(payload).frame_from(side)
}

/// The side a marker is for, and its number.
fn marker_of(frame: &[u8]) -> Option<(u8, u64)> {
    let at = frame.windows(MARKER.len()).position(|window| window == MARKER)?;
    let (side, number) = frame[at + MARKER.len()..].split_first()?;
    Some((*side, u64::from_be_bytes(number.get(..8)?.try_into().ok()?)))
}

/// Reports of group membership, which a kernel repeats whenever it likes.
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
