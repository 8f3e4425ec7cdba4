//! Any bytes as a frame: the forwarding path neither panics nor loses the packet, and what it forwards is right.
#![no_main]

use std::sync::{Arc, LazyLock};

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use fullview_plane::wire::icmp::Icmpv4Message;
use fullview_plane::wire::icmpv6::Icmpv6Message;
use fullview_plane::wire::ipv4::{self, Ipv4Packet};
use fullview_plane::wire::ipv6::Ipv6Packet;
use fullview_plane::wire::udp;
use fullview_table::fib::{Algorithm, Fib, linear::Linear};
use fullview_table::{Address, NextHop, Rib};
use libfuzzer_sys::fuzz_target;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// A default route, so that every packet in order goes out.
fn fib<A: Address>() -> Arc<dyn Fib<A>> {
    let mut rib = Rib::<A>::default();
    let default = if A::BITS == 32 { "0.0.0.0/0" } else { "::/0" };
    rib.announce(default.parse().expect("a default route"), NextHop(1));
    Linear.compile(&rib).expect("one route fits").fib()
}

static FIBS: LazyLock<(Arc<dyn Fib<u32>>, Arc<dyn Fib<u128>>)> = LazyLock::new(|| (fib(), fib()));

fn forwarder(vlan: Option<u16>) -> Forwarder {
    let mut adjacencies = Adjacencies::new();
    adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 1, mac: Mac([2, 0, 0, 0, 0, 3]) });
    let mut interfaces = vec![Interface::new(0, OURS), Interface::new(1, Mac([2, 0, 0, 0, 0, 2]))];
    interfaces[1].vlan = vlan;
    let (inet, inet6) = &*FIBS;
    let table = TableReaders::fixed(Arc::clone(inet), Arc::clone(inet6));
    let view = View::new(ViewParts::new(interfaces, adjacencies, table)).expect("two ports");
    Forwarder::new(ViewReader::fixed(view))
}

/// Accessors of checked views cannot panic.
fn read_payload(protocol: u8, payload: &[u8]) {
    match protocol {
        ipv4::protocol::UDP => {
            udp::Datagram::new_checked(payload).map(|datagram| datagram.payload().len()).ok();
        }
        ipv4::protocol::ICMP => {
            Icmpv4Message::new_checked(payload)
                .map(|message| (message.kind(), message.verify_checksum()))
                .ok();
        }
        ipv4::protocol::ICMPV6 => {
            Icmpv6Message::new_checked(payload).map(|message| (message.kind(), message.payload().len())).ok();
        }
        _ => {}
    }
}

fn check_forwarded(frame: &[u8]) {
    let frame = Frame::new_checked(frame).expect("a forwarded frame is whole");
    match frame.ethertype() {
        EtherType::IPV4 => {
            let packet = Ipv4Packet::new_checked(frame.payload()).expect("a forwarded packet is in order");
            assert!(packet.verify_checksum() && packet.ttl() > 0);
            read_payload(packet.protocol(), packet.payload());
        }
        EtherType::IPV6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).expect("a forwarded packet is in order");
            assert!(packet.hop_limit() > 0);
            read_payload(packet.next_header(), packet.payload());
        }
        other => panic!("{other:?} was forwarded"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((options, frame)) = bytes.split_first() else { return };
    let mut arena = Arena::new(1);
    let (mut burst, mut out, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    for packet in arena.packets() {
        packet.set_frame(frame);
        packet.port = 0;
        // Few inputs would ever guess the address.
        if options & 1 != 0 && packet.frame_len() >= 6 {
            packet.frame_mut()[..6].copy_from_slice(&OURS.0);
        }
        burst.fill([packet].into_iter());
    }
    forwarder((options & 2 != 0).then_some(7)).process(&mut burst, &mut out, &mut rejected);
    assert_eq!((burst.len(), out.len() + rejected.len()), (0, 1), "every packet comes back once");
    for packet in out.iter() {
        check_forwarded(packet.frame());
    }
});
