//! Packet ports cut frames of several packets as the kernel does for a card that cannot cut them.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_testnet::current::{ip, wait_until_up};
use fullview_testnet::{Node, cable, eventually, may_run};

use crate::conformance::{Pool, SLOTS};

/// Payload of the connection.
const BYTES: usize = 1 << 20;
/// Where the transport header begins, by family.
const TRANSPORT: [usize; 2] = [34, 54];
/// How long it may take until all frames came.
const PATIENCE: Duration = Duration::from_secs(20);

/// Left, a router with the kernel alone, and right. The router's kernel cuts what it sends to the right.
fn hosts() -> [Node; 3] {
    let nodes: [Node; 3] = std::array::from_fn(|_| Node::new());
    let [left, router, right] = &nodes;
    cable((left, "eth0"), (router, "eth1"));
    cable((router, "eth2"), (right, "eth0"));
    router.sysctl("ipv4/ip_forward", "1");
    router.sysctl("ipv6/conf/all/forwarding", "1");
    for (node, interface, number) in
        [(left, "eth0", "1.2"), (router, "eth1", "1.1"), (router, "eth2", "2.1"), (right, "eth0", "2.2")]
    {
        node.ip(&format!("address add 10.0.{number}/24 dev {interface}"));
        node.ip(&format!("address add fd00:{}/64 dev {interface} nodad", number.replace('.', "::")));
    }
    for (node, gateway) in [(left, 1), (right, 2)] {
        node.ip(&format!("route add default via 10.0.{gateway}.1"));
        node.ip(&format!("-6 route add default via fd00:{gateway}::1"));
    }
    router.command("ethtool -K eth2 tso off gso off tx-udp-segmentation off");
    nodes
}

/// The frames of an interface with payload for this port, without what a router changes, until `stop` is set and no more wait. The last
/// interface sets it, when as much payload came as is sent.
fn captured(
    node: &Node,
    (interface, is_last): (&'static str, bool),
    (port, transport): (u16, usize),
    ready: &Sender<()>,
    stop: &Arc<AtomicBool>,
) -> Vec<Vec<u8>> {
    let (ready, stop) = (ready.clone(), Arc::clone(stop));
    node.run(move || {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut packets = PacketPort::open(0, interface, PacketOptions::default()).unwrap();
        ready.send(()).unwrap();
        packets.recycle(&mut pool.take(BURST));
        let (mut frames, mut burst, mut bytes, begin) = (Vec::new(), Burst::new(), 0, Instant::now());
        while begin.elapsed() < PATIENCE {
            let is_over = stop.load(Ordering::Relaxed);
            let received = packets.receive(&mut burst, BURST).unwrap();
            for packet in burst.iter() {
                let payload = payload_of(packet.frame(), port, transport);
                frames.extend((payload > 0).then(|| unrouted(packet.frame(), transport)));
                bytes += payload;
            }
            packets.recycle(&mut burst);
            stop.fetch_or(is_last && bytes >= BYTES, Ordering::Relaxed);
            if is_over && received == 0 {
                break;
            }
        }
        let PortLosses { too_long, several, damaged, .. } = packets.losses();
        assert_eq!([too_long, several, damaged, packets.overruns().unwrap()], [0; 4]);
        frames
    })
}

fn protocol_of(frame: &[u8]) -> u8 {
    frame[if frame[12..14] == [8, 0] { 23 } else { 20 }]
}

/// The bytes behind the transport header of a frame for this port.
fn payload_of(frame: &[u8], port: u16, transport: usize) -> usize {
    let is_inet = frame[12..14] == [8, 0];
    let header = match protocol_of(frame) {
        6 => usize::from(frame[transport + 12] >> 4) * 4,
        17 => 8,
        _ => return 0,
    };
    let is_for_port =
        is_inet == (transport == TRANSPORT[0]) && frame[transport + 2..transport + 4] == port.to_be_bytes();
    let number = |at| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let end = if is_inet { 14 + number(16) } else { 54 + number(18) };
    if is_for_port { end - transport - header } else { 0 }
}

/// A frame without MAC addresses, hops, and the checksum that they are in. Two checksums of TCP stand for zero: of what the kernel cuts
/// the port at the right finishes them, and writes the other one, as the kernel does where no card finishes them (`skb_checksum_help`).
fn unrouted(frame: &[u8], transport: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..12].fill(0);
    if transport == TRANSPORT[0] {
        frame[22] = 0;
        frame[24..26].fill(0);
    } else {
        frame[21] = 0;
    }
    let checksum = transport + 16..transport + 18;
    if protocol_of(&frame) == 6 && frame[checksum.clone()] == [0xff; 2] {
        frame[checksum].fill(0);
    }
    frame
}

/// What a port of the router and the host behind it receive.
fn both_cuts([_, router, right]: &[Node; 3], of: (u16, usize), send: impl FnOnce()) -> [Vec<Vec<u8>>; 2] {
    let ((ready, are_ready), stop) = (channel(), Arc::default());
    thread::scope(|scope| {
        let by_port = scope.spawn(|| captured(router, ("eth1", false), of, &ready, &stop));
        let by_kernel = scope.spawn(|| captured(right, ("eth0", true), of, &ready, &stop));
        (0..2).for_each(|_| are_ready.recv().unwrap());
        send();
        [by_port, by_kernel].map(|thread| thread.join().unwrap())
    })
}

fn received_frames(node: &Node, interface: &str) -> usize {
    let shown = node.ip(&format!("-s link show dev {interface}"));
    let line = shown.lines().skip_while(|line| !line.contains("RX:")).nth(1).unwrap().to_owned();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// All that the kernel has cut the port has cut in the same way. Packets may be lost behind the router, or overtake each other.
fn assert_same([by_port, by_kernel]: &[Vec<Vec<u8>>; 2]) {
    let cut: HashSet<_> = by_port.iter().collect();
    let other = by_kernel.iter().find(|frame| !cut.contains(frame));
    assert!(other.is_none(), "the port has not cut {:02x?}", other.map(|frame| &frame[..74]));
    assert!(2 * by_kernel.len() > by_port.len(), "{} and {}", by_port.len(), by_kernel.len());
}

#[test]
fn segments_of_a_connection_are_those_that_the_kernel_cuts() {
    if !may_run(&["ip", "ethtool"]) {
        return;
    }
    let nodes = hosts();
    let [left, router, right] = &nodes;
    for (address, transport) in ["10.0.2.2:7000", "[fd00:2::2]:7000"].into_iter().zip(TRANSPORT) {
        let address: SocketAddr = address.parse().unwrap();
        let listener = right.run(move || TcpListener::bind(address).unwrap());
        let mut sender = left.run(move || TcpStream::connect(address).unwrap());
        let mut receiver = listener.accept().unwrap().0;
        let bytes = (0..BYTES).map(|at| (at % 251) as u8).collect::<Vec<_>>();
        let before = received_frames(router, "eth1");
        let cuts = both_cuts(&nodes, (7000, transport), || {
            thread::scope(|scope| {
                scope.spawn(|| sender.write_all(&bytes).unwrap());
                receiver.read_exact(&mut vec![0; BYTES]).unwrap();
            });
        });
        let merged = received_frames(router, "eth1") - before;
        assert!(cuts[0].len() > 2 * merged, "{merged} frames became {}", cuts[0].len());
        assert_same(&cuts);
    }
}

/// Sends so many frames of datagrams of 1,000 bytes, and a shorter one at the end of each (`UDP_SEGMENT`).
fn segmented_datagrams(host: &str, count: usize) -> String {
    let family = if host.contains(':') { "AF_INET6" } else { "AF_INET" };
    format!(
        "import socket; s = socket.socket(socket.{family}, socket.SOCK_DGRAM); s.setsockopt(17, 103, 1000); \
         [s.sendto(bytes([n % 251]) * 20500, ('{host}', 7000)) for n in range({count})]"
    )
}

fn run_python(node: &Node, code: &str) {
    let mut program = node.start("python3", &["-c", code]);
    assert!(eventually(|| !program.is_running()) && program.output().is_empty(), "{}", program.output());
}

#[test]
fn datagrams_are_those_that_the_kernel_cuts() {
    if !may_run(&["ip", "ethtool", "python3"]) {
        return;
    }
    let nodes = hosts();
    let [left, router, _] = &nodes;
    for (host, transport) in ["10.0.2.2", "fd00:2::2"].into_iter().zip(TRANSPORT) {
        let before = received_frames(router, "eth1");
        let cuts = both_cuts(&nodes, (7000, transport), || {
            run_python(left, &segmented_datagrams(host, BYTES / 20_500 + 1));
        });
        let merged = received_frames(router, "eth1") - before;
        assert!(cuts[0].len() > 2 * merged, "{merged} frames became {}", cuts[0].len());
        assert_same(&cuts);
    }
}

/// The first byte of each payload, and whether the link failed meanwhile, until so many came.
fn first_bytes<'a>(port: &mut PacketPort<'a>, free: &mut Burst<'a>, count: usize) -> (Vec<u8>, bool) {
    let (mut bytes, mut is_down, mut burst) = (Vec::new(), false, Burst::new());
    port.recycle(free);
    eventually(|| {
        is_down |= matches!(port.receive(&mut burst, BURST), Err(PortError::Down { .. }));
        let of_datagrams = burst.iter().filter(|packet| payload_of(packet.frame(), 7000, TRANSPORT[0]) > 0);
        bytes.extend(of_datagrams.map(|packet| packet.frame()[42]));
        port.recycle(&mut burst);
        bytes.len() >= count
    });
    (bytes, is_down)
}

/// The kernel says that the link has failed in place of the next frame.
#[test]
fn frames_that_wait_while_the_link_fails_are_received_in_order() {
    const FRAMES: usize = 3;
    if !may_run(&["ip", "ethtool", "python3"]) {
        return;
    }
    let [left, router, right] = hosts();
    let ((ready, is_ready), (sent, are_sent)) = (channel(), channel());
    let expected: Vec<u8> = (0..FRAMES as u8).flat_map(|number| [number; 21]).collect();
    thread::scope(|scope| {
        let both = scope.spawn(|| {
            router.run(move || {
                let mut arena = Arena::new(SLOTS);
                let mut pool = Pool::new(&mut arena);
                let mut port = PacketPort::open(0, "eth1", PacketOptions::default()).unwrap();
                ready.send(()).unwrap();
                are_sent.recv().unwrap();
                ip("link set dev eth1 down");
                ip("link set dev eth1 up");
                let first = first_bytes(&mut port, &mut pool.take(BURST), 21 * FRAMES);
                wait_until_up(&["eth1"]);
                ready.send(()).unwrap();
                are_sent.recv().unwrap();
                [first, first_bytes(&mut port, &mut Burst::new(), 21 * FRAMES)]
            })
        });
        for _ in 0..2 {
            is_ready.recv().unwrap();
            run_python(&left, &segmented_datagrams("10.0.2.2", FRAMES));
            sent.send(()).unwrap();
        }
        assert_eq!(both.join().unwrap(), [(expected.clone(), true), (expected, false)]);
    });
    drop(right);
}

/// A packet of more than 65,535 bytes is none that a port can cut.
#[test]
fn a_frame_that_is_too_long_takes_no_other_one_with_it() {
    const FRAMES: usize = 3;
    if !may_run(&["ip", "ethtool", "python3"]) {
        return;
    }
    let [left, router, right] = hosts();
    left.ip("link set dev eth0 gso_max_size 200000");
    let listener = right.run(|| TcpListener::bind("[fd00:2::2]:7000").unwrap());
    let mut sender = left.run(|| TcpStream::connect("[fd00:2::2]:7000").unwrap());
    let mut receiver = listener.accept().unwrap().0;
    let ((ready, is_ready), (sent, are_sent)) = (channel(), channel());
    let (received, lost) = thread::scope(|scope| {
        let port = scope.spawn(|| {
            router.run(move || {
                let mut arena = Arena::new(SLOTS);
                let mut pool = Pool::new(&mut arena);
                let mut port = PacketPort::open(0, "eth1", PacketOptions::default()).unwrap();
                ready.send(()).unwrap();
                are_sent.recv().unwrap();
                let (bytes, _) = first_bytes(&mut port, &mut pool.take(BURST), 21 * FRAMES);
                (bytes, port.losses().several)
            })
        });
        is_ready.recv().unwrap();
        thread::scope(|transfer| {
            transfer.spawn(|| sender.write_all(&vec![7; BYTES]).unwrap());
            receiver.read_exact(&mut vec![0; BYTES]).unwrap();
        });
        run_python(&left, &segmented_datagrams("10.0.2.2", FRAMES));
        sent.send(()).unwrap();
        port.join().unwrap()
    });
    assert!(lost > 0, "no frame was too long");
    assert_eq!(received, (0..FRAMES as u8).flat_map(|number| [number; 21]).collect::<Vec<_>>());
}
