//! Sends any frames at any times to a router without a kernel. The router must not panic, must keep its limits, and must
//! send frames that can be parsed. Input: for each frame a byte of options, a byte of time, a byte of length, and its bytes.
#![no_main]

use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::wire::arp::ArpPacket;
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER, Mac};
use fullview_plane::wire::extension::headers;
use fullview_plane::wire::icmp::Icmpv4Message;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::ndp;
use fullview_router::host::config::{HostConfig, HostSettings, NeighborSettings, StaticNextHop, StaticRoute};
use fullview_router::host::router::StandaloneRouter;
use fullview_router::route::RouteAction;
use libfuzzer_sys::fuzz_target;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
const SLOTS: usize = 64;

fn address(ip: &str, len: u8) -> InterfaceAddress {
    InterfaceAddress { ip: ip.parse().expect("an address"), len }
}

fn interface(port: u16) -> Interface {
    let inet = address(&format!("10.0.{port}.1"), 24);
    let inet6 = address(&format!("2001:db8:{port}::1"), 64);
    let addresses = vec![inet, inet6, address("fe80::1", 64)];
    Interface { addresses, redirects: true, mtu: 1280, ..Interface::new(port, OURS) }
}

fn config() -> HostConfig {
    let neighbors = NeighborSettings { capacity: 16, incomplete: 8, ..NeighborSettings::default() };
    let route = |ip, len, gateway: &str| StaticRoute {
        network: address(ip, len),
        action: RouteAction::Forward(StaticNextHop::Gateway {
            ip: gateway.parse().expect("an address"),
            interface: None,
        }),
    };
    let routes = vec![route("0.0.0.0", 0, "10.0.1.2"), route("::", 0, "2001:db8:1::2")];
    let settings = HostSettings { neighbors, ..HostSettings::default() };
    HostConfig { interfaces: vec![interface(0), interface(1)], routes, settings, ..HostConfig::default() }
}

/// The next frame of the input: its port, the time since the frame before, and its bytes, which the options may correct.
fn next(input: &mut &[u8]) -> Option<(u16, Duration, Vec<u8>)> {
    let ([options, time, len], rest) = input.split_first_chunk()?;
    let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*len)));
    *input = rest;
    let mut frame = bytes.to_vec();
    // Few inputs would guess the address or the checksums.
    if options & 2 != 0 && frame.len() >= 6 {
        frame[..6].copy_from_slice(&OURS.0);
    }
    if options & 4 != 0 {
        fill_checksum(&mut frame);
    }
    // This is longer than the MTU of any link.
    if options & 8 != 0 {
        frame.resize(frame.len() + 1400, 0);
    }
    Some((u16::from(options & 1), Duration::from_millis(u64::from(*time) * 20), frame))
}

fn fill_checksum(frame: &mut [u8]) {
    let Ok(mut frame) = Frame::new_checked(frame) else { return };
    if let Ok(mut packet) = Ipv4Packet::new_checked(frame.payload_mut()) {
        packet.fill_checksum();
    }
}

/// Parses a frame that the router sent with the types that parse received frames.
fn parse(frame: &[u8]) {
    let frame = Frame::new_checked(frame).expect("a frame that is sent is complete");
    match frame.ethertype() {
        EtherType::ARP => {
            ArpPacket::parse(frame.payload()).expect("a message that is sent is complete");
        }
        EtherType::IPV4 => {
            let packet =
                Ipv4Packet::new_checked(frame.payload()).expect("a packet that is sent is well-formed");
            assert!(packet.verify_checksum() && packet.ttl() > 0);
            Icmpv4Message::new_checked(packet.payload()).map(|message| message.kind()).ok();
        }
        EtherType::IPV6 => {
            let packet =
                Ipv6Packet::new_checked(frame.payload()).expect("a packet that is sent is well-formed");
            assert!(packet.hop_limit() > 0);
            assert!(headers(&packet).count() <= packet.payload().len() + 1);
            Icmpv6Message::new_checked(packet.payload()).map(|message| message.mtu()).ok();
            ndp::target(packet.payload()).ok();
        }
        other => panic!("{other:?} was sent"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut now = Duration::from_secs(1);
    let mut router = StandaloneRouter::new(now, &config()).expect("the configuration is valid");
    let mut input = bytes;
    while let Some((port, time, frame)) = next(&mut input) {
        now += time;
        let mut arena = Arena::new(SLOTS);
        let (mut burst, mut free, mut out) = (Burst::new(), Burst::new(), Burst::new());
        free.fill(arena.packets());
        let slot = free.pop().expect("there are slots");
        slot.set_frame(&frame);
        slot.port = port;
        burst.fill([slot].into_iter());
        router.process(now, &mut burst, &mut out, &mut free);
        assert_eq!(burst.len() + free.len() + out.len(), SLOTS, "no slot is lost");
        out.iter().filter(|packet| packet.frame_len() > HEADER).for_each(|packet| parse(packet.frame()));
    }
    let counters = router.host().counters();
    let most = 200.0 + (now.as_secs_f64() * 1000.0);
    assert!(counters.errors as f64 <= most, "{counters:?} in {now:?}");
});
