//! Probe packets, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::wire::checksum::{pseudo_ipv4, pseudo_ipv6};
use fullview_plane::wire::udp;
use fullview_testnet::{Node, PacketSocket};

use super::place::{Place, SIDES, host_mac, router_mac};

const MAGIC: &[u8; 8] = b"fvtwin01";
/// A router answers within a small part of this time; packets to stations that are being resolved take longer, and so do those
/// that wait for a thread whose core other work holds in the kernel. The comparison is made again then, with more time.
pub const SILENCE: Duration = Duration::from_millis(60);
pub const LONGEST_SILENCE: Duration = Duration::from_secs(1);
/// Where probes go to: every prefix of the changes, the links, and where no route leads.
const DESTINATIONS: [&str; 26] = [
    "172.16.0.9",
    "172.16.1.9",
    "172.16.2.9",
    "172.16.2.200",
    "172.16.3.9",
    "172.16.3.7",
    "172.16.4.9",
    "172.16.9.9",
    "10.0.2.3",
    "10.0.2.4",
    "10.0.3.2",
    "10.0.2.66",
    "10.9.2.9",
    "192.0.2.1",
    "10.0.2.255",
    "10.0.1.3",
    "2001:db8:a::9",
    "2001:db8:a:1::9",
    "2001:db8:a:2::9",
    "2001:db8:a:2::7",
    "2001:db8:b::9",
    "2001:db8:c::9",
    "2001:db8:2::3",
    "2001:db8:2::4",
    "2001:db8:3::2",
    "2001:db8:ffff::1",
];

/// What came out at a host for one probe. Of what a kernel itself sends, its number (IPv4's identification) is random.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    side: usize,
    /// The frame's Ethernet header, hops and protocol; of an error also its sender and type.
    shape: Vec<u8>,
    /// The whole frame, unless the router made it itself.
    frame: Option<Vec<u8>>,
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.frame.is_some() { "forwarded" } else { "an error" };
        write!(f, "{what} to host {}: {:02x?}", self.side + 1, self.shape)
    }
}

/// The fates of probes by the host that sent them, their destination, and their number.
pub type Fates = BTreeMap<(usize, IpAddr), Vec<Vec<Fate>>>;

/// What is sent: so many flows to each destination, the last one with a last hop.
pub fn send(
    place: &Place,
    carriers: [bool; SIDES],
    flows: u16,
    only: &BTreeSet<(usize, IpAddr)>,
    (round, silence): (u32, Duration),
) -> Fates {
    let mac = current_macs(place);
    // The socket of an interface that is down has errors and nothing else.
    let open = |(side, host): (usize, &Node)| carriers[side].then(|| host.packet_socket("eth0"));
    let mut sockets: Vec<Option<PacketSocket>> = place.hosts.iter().enumerate().map(open).collect();
    let pairs = pairs(only);
    let mut fates: Fates = pairs.iter().map(|pair| (*pair, vec![Vec::new(); usize::from(flows)])).collect();
    let mut numbers = Vec::new();
    // A kernel answers only the first of the probes to a destination. Those with a last hop reach the one below our program
    // directly, others by a thread of ours, so they are sent when the others have arrived.
    for is_last in [false, true] {
        for &(side, destination) in &pairs {
            for flow in (0..flows).filter(|flow| (flow + 1 == flows) == is_last) {
                let number = numbers.len() as u32;
                let hops = if is_last { 1 } else { 64 };
                let frame = probe(side, mac[side], destination, flow, hops, (round, number));
                // A link that is down takes none.
                let _ = sockets[side].as_mut().map(|socket| socket.send(&frame));
                numbers.push((side, destination, usize::from(flow)));
            }
        }
        if !is_last {
            thread::sleep(silence / 2);
        }
    }
    for (side, frame) in collect(&mut sockets, silence) {
        let Some((of_round, number)) = mark(&frame) else { continue };
        if let (true, Some((from, destination, flow))) = (of_round == round, numbers.get(number as usize)) {
            let fate = fate(side, frame);
            if let Some(fate) = fate {
                fates.get_mut(&(*from, *destination)).unwrap()[*flow].push(fate);
            }
        }
    }
    fates
}

fn pairs(only: &BTreeSet<(usize, IpAddr)>) -> Vec<(usize, IpAddr)> {
    if !only.is_empty() {
        return only.iter().copied().collect();
    }
    let addresses = DESTINATIONS.iter().map(|address| address.parse::<IpAddr>().unwrap());
    addresses.flat_map(|address| [(0, address), (2, address)]).collect()
}

/// The router's MAC addresses now.
fn current_macs(place: &Place) -> Vec<[u8; 6]> {
    let parse = |text: String| -> Option<[u8; 6]> {
        let bytes: Result<Vec<u8>, _> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        bytes.ok()?.try_into().ok()
    };
    (0..SIDES)
        .map(|side| parse(place.router.mac(&format!("eth{}", side + 1))).unwrap_or(router_mac(side)))
        .collect()
}

fn probe(side: usize, to: [u8; 6], destination: IpAddr, flow: u16, hops: u8, mark: (u32, u32)) -> Vec<u8> {
    let mut content = MAGIC.to_vec();
    content.extend(mark.0.to_be_bytes());
    content.extend(mark.1.to_be_bytes());
    let mut frame = [&to[..], &host_mac(side)].concat();
    let datagram = datagram(side, destination, flow, &content);
    match destination {
        IpAddr::V4(ip) => {
            frame.extend([0x08, 0x00]);
            let length = (20 + datagram.len()) as u16;
            let mut header = vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 7, 0x40, 0, hops, 17, 0, 0];
            header.extend(source4(side, flow));
            header.extend(ip.octets());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum);
            frame.extend(header);
        }
        IpAddr::V6(ip) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, flow as u8, 0, datagram.len() as u8, 17, hops]);
            frame.extend(source6(side));
            frame.extend(ip.octets());
        }
    }
    frame.extend(datagram);
    frame
}

/// Whatever the setting, two flows differ in what chooses their next hop: in their ports, and in their addresses, or in their
/// labels with IPv6.
fn source4(side: usize, flow: u16) -> [u8; 4] {
    [10, 0, side as u8 + 1, 128 + flow as u8]
}

fn source6(side: usize) -> [u8; 16] {
    format!("2001:db8:{}::2", side + 1).parse::<std::net::Ipv6Addr>().unwrap().octets()
}

fn checksum(header: &[u8]) -> [u8; 2] {
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
}

fn datagram(side: usize, destination: IpAddr, flow: u16, content: &[u8]) -> Vec<u8> {
    let (port, length) = (2000 + flow, (udp::HEADER + content.len()) as u16);
    let mut bytes =
        [&port.to_be_bytes()[..], &9u16.to_be_bytes(), &length.to_be_bytes(), &[0, 0], content].concat();
    let pseudo = match destination {
        IpAddr::V4(ip) => pseudo_ipv4(u32::from_be_bytes(source4(side, flow)), ip.to_bits(), 17, length),
        IpAddr::V6(ip) => pseudo_ipv6(u128::from_be_bytes(source6(side)), ip.to_bits(), 17, length.into()),
    };
    udp::Datagram::new_unchecked(&mut bytes).fill_checksum(pseudo);
    bytes
}

/// Everything that the hosts receive until all are silent for this time.
fn collect(sockets: &mut [Option<PacketSocket>], silence: Duration) -> Vec<(usize, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut last = Instant::now();
    while last.elapsed() < silence {
        let open = sockets.iter_mut().enumerate().filter_map(|(side, socket)| Some((side, socket.as_mut()?)));
        for (side, socket) in open {
            while let Some(frame) = socket.receive(Instant::now()) {
                frames.push((side, frame));
                last = Instant::now();
            }
        }
    }
    frames
}

/// The round and the number of the probe that a frame contains or quotes.
fn mark(frame: &[u8]) -> Option<(u32, u32)> {
    let at = frame.windows(MAGIC.len()).position(|bytes| bytes == MAGIC)? + MAGIC.len();
    let number = |at: usize| Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    Some((number(at)?, number(at + 4)?))
}

/// What a frame says of a probe's fate; nothing if the host sent it, or if it redirects the sender.
fn fate(side: usize, frame: Vec<u8>) -> Option<Fate> {
    if frame[6..12] == host_mac(side) {
        return None;
    }
    let (hops, protocol, source, icmp) = match frame[12..14] {
        [0x08, 0x00] => (frame[22], frame[23], &frame[26..30], &frame[34..36]),
        _ => (frame[21], frame[20], &frame[22..38], &frame[54..56]),
    };
    let is_error = protocol != 17;
    if is_error && [5, 137].contains(&icmp[0]) {
        return None;
    }
    let mut shape = [&frame[..14], &[hops, protocol]].concat();
    if is_error {
        shape.extend([source, icmp].concat());
    }
    Some(Fate { side, shape, frame: (!is_error).then_some(frame) })
}

/// What came out of all probes to one destination together.
#[derive(Default)]
struct Together {
    /// What came out at which host; whether it was the probe with a last hop.
    shapes: BTreeSet<(bool, usize, Vec<u8>)>,
    /// Whether something was lost of those with more hops.
    lost: bool,
}

impl Together {
    fn of(fates: &[Vec<Fate>]) -> Together {
        let Some((last, flows)) = fates.split_last() else { return Together::default() };
        let shape = |fate: &Fate| (fate.side, fate.shape.clone());
        let of_flows: BTreeSet<_> = flows.iter().flatten().map(shape).collect();
        // A kernel sends a host few errors a second, so it may be the probe with a last hop that has one, or none.
        let is_limited = |fate: &&Fate| fate.frame.is_none() && of_flows.contains(&shape(fate));
        let of_last =
            last.iter().filter(|fate| !is_limited(fate)).map(|fate| (true, fate.side, fate.shape.clone()));
        let of_flows = of_flows.iter().map(|(side, shape)| (false, *side, shape.clone()));
        Together { shapes: of_flows.chain(of_last).collect(), lost: flows.iter().any(Vec::is_empty) }
    }

    /// Whether several next hops share the flows.
    fn is_shared(&self) -> bool {
        self.shapes.iter().filter(|(is_last, ..)| !is_last).count() + usize::from(self.lost) > 1
    }

    /// Whether flows that may be shared in another way had these fates. What our program leaves to its kernel because a
    /// next hop is not resolved, the kernel shares anew, so that nothing may be lost that way.
    fn allows(&self, ours: &Together) -> bool {
        self.is_shared() && self.shapes == ours.shapes && (self.lost || !ours.lost)
    }
}

/// The pairs of host and destination whose probes have other fates.
pub fn different(ours: &Fates, twins: &Fates) -> Vec<(usize, IpAddr)> {
    let differs = |key: &&(usize, IpAddr)| {
        let (ours, twins) = (&ours[*key], &twins[*key]);
        ours != twins && !Together::of(twins).allows(&Together::of(ours))
    };
    ours.keys().filter(differs).copied().collect()
}

/// The fates of one pair, for a person: each with the number of flows that had it, the one with a last hop apart.
pub fn shown(fates: &Fates, key: &(usize, IpAddr)) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    let last = fates[key].len() - 1;
    for (flow, fates) in fates[key].iter().enumerate() {
        let each: Vec<String> = fates.iter().map(Fate::to_string).collect();
        let what = if each.is_empty() { "nothing".into() } else { each.join(" and ") };
        let hops = if flow == last { "last hop" } else { "flow" };
        *counts.entry(format!("{hops}: {what}")).or_default() += 1;
    }
    counts.iter().map(|(what, count)| format!("    {count} {what}")).collect::<Vec<_>>().join("\n")
}

/// Two of three flows had no error, as there were too many; the probe with a last hop was the third in one place.
#[test]
fn which_probes_have_an_error_is_up_to_the_kernels_limit() {
    let error = || vec![Fate { side: 0, shape: vec![3, 0], frame: None }];
    let forwarded = || vec![Fate { side: 1, shape: vec![64], frame: Some(vec![1]) }];
    let pair = (0, IpAddr::from([192, 0, 2, 1]));
    let differ = |ours: [Vec<Fate>; 4], twins: [Vec<Fate>; 4]| {
        let [ours, twins] = [ours, twins].map(|fates| Fates::from([(pair, fates.into())]));
        !different(&ours, &twins).is_empty()
    };
    let nothing = Vec::new;
    assert!(!differ([error(), nothing(), nothing(), error()], [error(), error(), nothing(), nothing()]));
    assert!(differ([error(), nothing(), nothing(), forwarded()], [error(), error(), nothing(), nothing()]));
    assert!(differ([error(), error(), error(), nothing()], [error(), error(), error(), error()]));
    assert!(differ(
        [forwarded(), forwarded(), forwarded(), nothing()],
        [forwarded(), forwarded(), forwarded(), error()]
    ));
}
