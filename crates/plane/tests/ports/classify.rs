//! While fullview forwards, the kernel handles its own frames and none of the forwarded ones.
//!
//! `source` and `sink` are the neighbours' ends of two veth pairs, `in` and `out` are the router's ends. The kernel routes
//! from `in` to 198.19.0.0/16 and 2001:db8:2::/48 by `out`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::Port;
use fullview_plane::port::classify::{CLASSES, Classifier, IngressKey, IngressSettings, RedirectScope};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::reinject::ReinjectThread;
use fullview_plane::wire::ethernet::Mac;
use fullview_testnet::current::{command, ip, sysctl, wait_until_up};
use fullview_testnet::{Node, eventually, in_namespace, may_run};

use crate::conformance::{PATIENCE, Pool, send};
use crate::packets::{ROUTER, SENDER, echo, forwarded, tcp, tcp6, udp, udp6};

/// More packets than all ports of a test hold.
const SLOTS: usize = 3000;
/// The neighbour on `out`.
const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];

/// A kernel that routes.
pub fn routing_kernel() {
    sysctl("ipv6/conf/default/disable_ipv6", "0");
    sysctl("ipv6/conf/default/accept_dad", "0");
    ip("link add in address 02:00:00:00:00:aa type veth peer name source");
    ip("link add out address 02:00:00:00:00:aa type veth peer name sink");
    for end in ["source", "sink"] {
        sysctl(&format!("ipv6/conf/{end}/disable_ipv6"), "1");
    }
    for interface in ["in", "out"] {
        // Keeps the kernel from sending router solicitations and multicast reports.
        sysctl(&format!("ipv6/conf/{interface}/router_solicitations"), "0");
        sysctl(&format!("ipv6/conf/{interface}/addr_gen_mode"), "1");
    }
    for end in ["in", "source", "out", "sink"] {
        ip(&format!("link set dev {end} up"));
    }
    for (all, value) in
        [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1"), ("ipv4/icmp_ratelimit", "0")]
    {
        sysctl(all, value);
    }
    for arguments in [
        "address add 198.18.0.254/24 dev in",
        "address add 198.19.0.254/16 dev out",
        "address add 2001:db8:1::fe/64 dev in nodad",
        "address add 2001:db8:2::fe/48 dev out nodad",
        "neighbour add 198.18.0.1 lladdr 02:00:00:00:00:01 dev in",
        "neighbour add 198.19.0.1 lladdr 02:00:00:00:00:bb dev out",
        "neighbour add 2001:db8:1::1 lladdr 02:00:00:00:00:01 dev in",
        "neighbour add 2001:db8:2::1 lladdr 02:00:00:00:00:bb dev out",
    ] {
        ip(arguments);
    }
    wait_until_up(&["in", "source", "out", "sink"]);
}

/// A classifier that knows the router's two interfaces.
pub fn classifier() -> Classifier {
    let mut classifier = Classifier::load().unwrap();
    set_ingress(&mut classifier, false);
    let local = ["198.18.0.254", "198.19.0.254", "2001:db8:1::fe", "2001:db8:2::fe", "198.19.255.255"];
    classifier.set_local_addresses(&local.map(|address| address.parse::<IpAddr>().unwrap()).into()).unwrap();
    classifier
}

fn set_ingress(classifier: &mut Classifier, leaves_tcp: bool) {
    let station = IngressSettings { mac: Mac(ROUTER), forwards_inet: true, forwards_inet6: true, leaves_tcp };
    let place = |name| IngressKey { interface: Link::named(name).unwrap().index(), vlan: None };
    classifier.set_ingress(&HashMap::from([(place("in"), station), (place("out"), station)])).unwrap();
}

pub fn open<'a>(interface: &str) -> PacketPort<'a> {
    PacketPort::open(0, interface, PacketOptions::default()).unwrap()
}

/// Opens `in`, and takes from the kernel what the classifier gives to the port.
pub fn open_in<'a>(classifier: &mut Classifier) -> PacketPort<'a> {
    let options = PacketOptions { filter: Some(classifier.filter().unwrap()), ..Default::default() };
    let port = PacketPort::open(0, "in", options).unwrap();
    classifier.take_from_kernel(&link_in()).unwrap();
    port
}

fn link_in() -> Link {
    Link::named("in").unwrap()
}

/// Sends these frames by `source`.
pub fn put<'a>(source: &mut PacketPort<'a>, pool: &mut Pool<'a>, frames: &[Vec<u8>]) {
    let mut burst = pool.take(frames.len());
    burst.iter_mut().zip(frames).for_each(|(slot, frame)| assert!(slot.set_frame(frame)));
    send(source, &mut burst);
    let mut free = Burst::new();
    source.reclaim(&mut free);
    pool.give(&mut free);
}

/// The frames that a port has received, except multicast frames of the kernel.
pub fn arrived<'a>(port: &mut dyn Port<'a>, pool: &mut Pool<'a>) -> Vec<Vec<u8>> {
    let mut burst = pool.take(64);
    port.recycle(&mut burst);
    pool.give(&mut burst);
    thread::sleep(Duration::from_millis(20));
    port.receive(&mut burst, BURST).unwrap();
    let frames = burst.iter().map(|packet| packet.frame().to_vec());
    let frames = frames.filter(|frame| frame[0] & 1 == 0).collect();
    pool.give(&mut burst);
    frames
}

/// Waits for this number of frames.
pub fn all_arrived<'a>(port: &mut dyn Port<'a>, pool: &mut Pool<'a>, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for _ in 0..500 {
        frames.extend(arrived(port, pool));
        if frames.len() >= count {
            return frames;
        }
    }
    panic!("{} of {count} frames arrived", frames.len());
}

/// Frames that a router forwards without any other message.
pub fn plain() -> Vec<Vec<u8>> {
    vec![udp("198.19.0.1", 64, 18), udp6("2001:db8:2::1", 64, 17, 1400), udp("198.19.0.1", 2, 1472)]
}

#[test]
fn what_a_packet_socket_takes_the_kernel_does_not_forward() {
    in_namespace(|| {
        routing_kernel();
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut source, mut sink) = (open("source"), open("sink"));
        let passed_on: Vec<_> = plain().iter().map(|frame| forwarded(frame, NEXT)).collect();
        put(&mut source, &mut pool, &plain());
        assert_eq!(all_arrived(&mut sink, &mut pool, 3), passed_on, "the kernel forwards");

        let mut classifier = classifier();
        let mut port = open_in(&mut classifier);
        put(&mut source, &mut pool, &plain());
        assert_eq!(all_arrived(&mut port, &mut pool, 3), plain(), "the port receives them now");
        assert_eq!(arrived(&mut sink, &mut pool), Vec::<Vec<u8>>::new(), "the kernel does not forward them");

        put(&mut source, &mut pool, &[echo("198.18.0.254"), udp("198.19.0.1", 1, 18)]);
        let answers = all_arrived(&mut source, &mut pool, 2);
        let icmp_types: Vec<_> = answers.iter().map(|frame| frame[34]).collect();
        assert_eq!(icmp_types, [0, 11], "the kernel answers: echo reply, time exceeded");
        assert_eq!(arrived(&mut port, &mut pool).len(), 0, "the port does not receive them");

        classifier.release(&link_in());
        put(&mut source, &mut pool, &plain());
        assert_eq!(all_arrived(&mut sink, &mut pool, 3), passed_on, "the kernel forwards again");
    });
}

/// Frames, and the class of each.
pub fn cases() -> Vec<(&'static str, Vec<u8>)> {
    let edit = |mut frame: Vec<u8>, at: usize, value: u8| {
        frame[at] = value;
        frame
    };
    let (inet, inet6) = (|| udp("198.19.0.1", 64, 18), || udp6("2001:db8:2::1", 64, 17, 20));
    let tagged = |vlan: u8| {
        let mut frame = inet();
        frame.splice(12..12, [0x81, 0, 0, vlan]);
        frame
    };
    let mut cut = inet();
    cut.truncate(30);
    vec![
        ("forward", inet()),
        ("forward", inet6()),
        ("forward", tagged(0)),
        ("forward", udp("198.19.0.1", 64, 0)),
        ("not_ours", edit(inet(), 5, 0xbb)),
        ("not_ours", tagged(5)),
        ("not_ip", edit(inet(), 13, 0x06)),
        ("not_ours", edit(inet(), 0, 0xff)),
        ("local", udp("198.19.0.254", 64, 18)),
        ("local", udp6("2001:db8:2::fe", 64, 17, 18)),
        ("local", udp("198.19.255.255", 64, 18)),
        ("group", udp("224.0.0.5", 64, 18)),
        ("group", udp("255.255.255.255", 64, 18)),
        ("group", udp6("ff02::5", 64, 17, 18)),
        ("special", udp("169.254.1.1", 64, 18)),
        ("special", udp("127.0.0.1", 64, 18)),
        ("special", udp("0.0.0.1", 64, 18)),
        ("special", udp6("fe80::1", 64, 17, 18)),
        ("special", udp6("::1", 64, 17, 18)),
        ("special", edit(edit(inet6(), 22, 0xfe), 23, 0x80)),
        ("lifetime", udp("198.19.0.1", 1, 18)),
        ("lifetime", udp6("2001:db8:2::1", 1, 17, 18)),
        ("options", edit(inet(), 14, 0x46)),
        ("options", udp6("2001:db8:2::1", 64, 0, 18)),
        ("malformed", edit(inet(), 14, 0x55)),
        ("malformed", edit(inet(), 14, 0x44)),
        ("malformed", edit(inet(), 16, 0x7f)),
        ("malformed", edit(inet(), 17, 19)),
        ("malformed", edit(inet6(), 14, 0x40)),
        ("malformed", edit(inet6(), 18, 0x7f)),
        ("malformed", cut),
        ("too_long", udp("198.19.0.1", 64, 2101 - 42)),
    ]
}

#[test]
fn a_packet_socket_classifies_every_frame() {
    in_namespace(|| {
        routing_kernel();
        for end in ["in", "source"] {
            ip(&format!("link set dev {end} mtu 2150"));
        }
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut source = open("source");
        let mut classifier = classifier();
        let mut port = open_in(&mut classifier);
        for (answer, frame) in cases() {
            answers(&mut classifier, &mut source, &mut port, &mut pool, answer, &frame);
        }
    });
}

/// Writes frames of datagrams as a virtual machine does (`virtio_net.h`): by their kind, payload of each packet, and bytes in all. Begins
/// at a signal.
const VIRTUAL_MACHINE: &str = "
import fcntl, os, signal, struct
tap = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tap, 0x400454ca, struct.pack('16sH22x', b'in', 0x0002 | 0x1000 | 0x4000))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print('open', flush=True)
signal.sigwait([signal.SIGUSR1])
for kind, size, payload in [(3, 1480, 4000), (5, 1000, 2500), (3, 1480, 4000), (0, 0, 900)]:
    ip = struct.pack('>BBHHHBBH4B4B', 0x45, 0, 28 + payload, 7, 0, 64, 17, 0, 198, 18, 0, 1, 198, 19, 0, 1)
    total = sum(struct.unpack('>10H', ip))
    ip = ip[:10] + struct.pack('>H', 0xffff - (total // 0xffff + total % 0xffff) % 0xffff) + ip[12:]
    frame = bytes([2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + struct.pack('>HHHH', 12345, 9, 8 + payload, 0)
    os.write(tap, struct.pack('=BBHHHH', kind != 0, kind, 42, size, 34, 6) + frame + bytes(payload))
signal.pause()
";

/// A ring gets no frame any more after one whose kind of packets the kernel cannot describe, such as fragments of a datagram.
#[test]
fn frames_of_several_datagrams_are_taken_and_frames_of_fragments_are_not() {
    if !may_run(&["python3"]) {
        return;
    }
    let node = Node::new();
    node.ip("tuntap add dev in mode tap vnet_hdr");
    node.ip("link set dev in address 02:00:00:00:00:aa up");
    let mut machine = node.start("python3", &["-c", VIRTUAL_MACHINE]);
    machine.wait_for("open");
    node.run(move || {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut classifier = Classifier::load_for_filter(None).unwrap();
        let station = IngressSettings {
            mac: Mac(ROUTER),
            forwards_inet: true,
            forwards_inet6: false,
            leaves_tcp: false,
        };
        let place = IngressKey { interface: link_in().index(), vlan: None };
        classifier.set_ingress(&HashMap::from([(place, station)])).unwrap();
        let mut port = open_in(&mut classifier);
        machine.signal("USR1");
        let lengths: Vec<_> = all_arrived(&mut port, &mut pool, 4).iter().map(Vec::len).collect();
        assert_eq!(lengths, [1042, 1042, 542, 942]);
        let too_long = CLASSES.iter().position(|class| *class == "too_long").unwrap();
        assert_eq!(classifier.counts().unwrap()[too_long], 2);
    });
}

#[test]
fn a_packet_socket_leaves_tcp_to_the_kernel_where_it_is_told_to() {
    in_namespace(|| {
        routing_kernel();
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut source, mut sink) = (open("source"), open("sink"));
        let mut classifier = classifier();
        let mut port = open_in(&mut classifier);
        let segments = [tcp("198.19.0.1", 0x10, 100), tcp6("2001:db8:2::1", 0x10, 100)];
        for (leaves_tcp, class) in [(true, "tcp_beside_large"), (false, "forward")] {
            set_ingress(&mut classifier, leaves_tcp);
            for frame in &segments {
                answers(&mut classifier, &mut source, &mut port, &mut pool, class, frame);
            }
            for (class, frame) in
                [("forward", udp("198.19.0.1", 64, 18)), ("local", tcp("198.19.0.254", 4, 0))]
            {
                answers(&mut classifier, &mut source, &mut port, &mut pool, class, &frame);
            }
        }
        let passed_on = segments.map(|frame| forwarded(&frame, NEXT));
        assert_eq!(all_arrived(&mut sink, &mut pool, 2), passed_on, "the kernel forwards what is left to it");
    });
}

/// Checks that the frame is counted in this class only, and that the port receives it if it is forwardable.
pub fn answers<'a>(
    classifier: &mut Classifier,
    source: &mut PacketPort<'a>,
    port: &mut dyn Port<'a>,
    pool: &mut Pool<'a>,
    answer: &str,
    frame: &[u8],
) {
    let before = classifier.counts().unwrap();
    put(source, pool, &[frame.to_vec()]);
    let changed = || {
        thread::sleep(Duration::from_millis(5));
        let after = classifier.counts().unwrap();
        let changed = (0..CLASSES.len()).filter(|at| after[*at] > before[*at]);
        let changed: Vec<_> = changed.map(|at| CLASSES[at]).collect();
        (!changed.is_empty()).then_some(changed)
    };
    let got = (0..1000).find_map(|_| changed()).unwrap();
    assert_eq!(got, [answer], "{frame:02x?}");
    match answer {
        "forward" => assert_eq!(all_arrived(port, pool, 1), [frame]),
        _ => assert_eq!(arrived(port, pool).len(), 0),
    }
}

#[test]
fn the_kernel_receives_reinjected_frames_and_the_port_does_not() {
    in_namespace(|| {
        routing_kernel();
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut source, mut sink) = (open("source"), open("sink"));
        let mut classifier = classifier();
        let mut port = open_in(&mut classifier);
        let link = link_in();
        let (injector, mut givers) = ReinjectThread::start(classifier.trailer(), 1).unwrap();
        let giver = &mut givers[0];

        // As many frames as the rings hold: of every length, with padding, and one without a route.
        let mut frames: Vec<_> = (0..150).map(|n| udp("198.19.0.1", 64, n * 9)).collect();
        frames.extend((0..149).map(|n| udp6("2001:db8:2::1", 64, 17, n * 9)));
        let expected: Vec<_> = frames.iter().map(|frame| forwarded(frame, NEXT)).collect();
        for _ in 0..2 {
            sink.recycle(&mut pool.take(BURST));
        }
        for mut frame in frames.iter().cloned() {
            frame.resize(frame.len().max(60), 0);
            assert!(giver.queue(link.index(), &frame));
        }
        assert!(giver.queue(link.index(), &udp("203.0.113.1", 64, 18)));
        giver.flush();
        assert!(all_arrived(&mut sink, &mut pool, expected.len()) == expected);
        let answers = all_arrived(&mut source, &mut pool, 1);
        assert_eq!((answers.len(), answers[0][34], answers[0][35]), (1, 3, 0), "network unreachable");
        assert_eq!(answers[0][..6], SENDER);
        assert_eq!(arrived(&mut port, &mut pool).len(), 0);
        // The thread counts frames after the kernel has received them.
        let received = || injector.counters().received.load(Ordering::Relaxed);
        let are_counted = (0..PATIENCE).any(|_| {
            thread::sleep(Duration::from_millis(1));
            received() >= 300
        });
        assert!(are_counted, "{}", received());
        assert_eq!((received(), injector.counters().lost.load(Ordering::Relaxed)), (300, 0));

        assert!(!giver.queue(link.index(), &[0; 60]), "not IP");
        let long = udp("198.19.0.1", 64, 18);
        assert!((0..5000).any(|_| !giver.queue(link.index(), &long)), "a flood is refused without waiting");
        assert!(giver.refused() >= 2);
    });
}

#[test]
fn failed_links_are_noted_within_the_kernel() {
    in_namespace(|| {
        routing_kernel();
        let mut classifier = classifier();
        let links = NotedLinks::shared(classifier.link_words().unwrap());
        let devices = ["out", "sink", "in"].map(|name| Link::named(name).unwrap().index());
        let failed = || devices.map(|device| links.has_failed(device));
        links.begin(classifier.note_failed_links().unwrap());
        command("tc qdisc add dev out root pfifo");
        assert_eq!(failed(), [false; 3], "its queue is replaced");
        let elsewhere = Node::new();
        elsewhere.ip(&format!("link add name out index {} type veth peer name sink", devices[0]));
        ["up", "down"].iter().for_each(|state| _ = elsewhere.ip(&format!("link set out {state}")));
        assert_eq!(failed(), [false; 3], "it is in another network namespace");
        ip("link set out down");
        assert!(links.has_failed(devices[0]));
        assert!(eventually(|| failed() == [true, true, false]), "the other end loses the carrier");
        links.end();
        ip("link set in down");
        assert_eq!(failed(), [false; 3]);
    });
}

#[test]
fn attaching_fails_beside_another_program_and_on_a_removed_interface() {
    in_namespace(|| {
        routing_kernel();
        let (mut first, mut second) = (classifier(), classifier());
        let link = link_in();
        first.redirect(&link, RedirectScope::Forwardable, &[]).unwrap();
        let refused = second.redirect(&link, RedirectScope::Forwardable, &[]).unwrap_err().to_string();
        assert!(refused.starts_with("interface in has an XDP program already; `ip link"), "{refused}");
        drop(first);
        second.redirect(&link, RedirectScope::Forwardable, &[]).unwrap();
        second.release(&link);
        // Released entries for sockets are used again.
        let other = open("out");
        for _ in 0..3 {
            let many =
                second.redirect(&link, RedirectScope::Forwardable, &[other.as_fd(); 1025]).unwrap_err();
            assert!(many.to_string().starts_with("interface in: there are more than 1024 queues"), "{many}");
        }
        ip("link del dev in");
        let gone = Classifier::load().unwrap().take_from_kernel(&link).unwrap_err().to_string();
        assert!(gone.starts_with("interface in: the kernel cannot be kept"), "{gone}");
    });
}
