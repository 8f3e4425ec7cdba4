//! Packet sockets, in a namespace with a cable.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use fullview_plane::burst::{Arena, BURST, Burst, FRAME_CAPACITY};
use fullview_plane::flow_owner::owner;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::spread::Spread;
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_plane::wire::checksum::Sum;
use fullview_testnet::current::{cable, command, ip, wait_until_up};
use fullview_testnet::in_namespace;

use crate::conformance::{
    PATIENCE, Pool, SLOTS, carries_everything_in_order, carry, error_of, frame, keeps_tags, receive, send,
};

fn open<'a>(number: u16, interface: &str) -> PacketPort<'a> {
    PacketPort::open(number, interface, PacketOptions::default()).unwrap()
}

#[test]
fn packet_ports_conform() {
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut left, mut right) = (open(3, "left"), open(4, "right"));
        let ports: [&mut dyn Port<'_>; 2] = [&mut left, &mut right];
        carries_everything_in_order(ports, &mut pool, 14..=FRAME_CAPACITY);
        keeps_tags(&mut left, &mut right, &mut pool);
        assert_eq!((left.overruns().unwrap(), right.overruns().unwrap()), (0, 0));
        assert_eq!(left.losses(), Default::default());
    });
}

#[test]
fn packet_ports_survive_a_link_that_goes_down_and_say_when_it_is_gone() {
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut left, mut right) = (open(0, "left"), open(1, "right"));
        ip("link set dev right down");
        error_of(&mut right, |error| matches!(error, PortError::Down { .. }));
        ip("link set dev right up");
        wait_until_up(&["left", "right"]);
        let frames = [frame(1, 60)];
        assert_eq!(carry(&mut left, &mut right, &mut pool, &frames), frames);
        ip("link del dev right");
        error_of(&mut right, |error| matches!(error, PortError::Removed { .. }));
        assert!(right.is_finished());
        let mut burst = pool.take(1);
        burst[0].set_frame(&frames[0]);
        let error = left.transmit(&mut burst).unwrap_err();
        assert_eq!(error.to_string(), "interface left was removed");
        assert_eq!((burst.len(), left.refused(), left.is_finished()), (1, 1, true));
    });
}

/// A UDP socket whose datagrams leave by `left` to a neighbour that does not exist.
fn datagrams(mtu: usize) -> UdpSocket {
    cable("left", "right", mtu + 14);
    ip("address add 198.18.0.1/24 dev left");
    ip("neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev left");
    let socket = UdpSocket::bind("198.18.0.1:7").unwrap();
    socket.connect("198.18.0.2:9").unwrap();
    socket
}

#[test]
fn frames_longer_than_a_slot_are_counted_and_left_out() {
    in_namespace(|| {
        let socket = datagrams(9000);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut right = open(1, "right");
        let fits = FRAME_CAPACITY - 14 - 20 - 8;
        right.recycle(&mut pool.take(1));
        for len in [fits + 1, 3000, 8000, fits] {
            socket.send(&vec![7; len]).unwrap();
        }
        let received = receive(&mut right, &mut pool, 1);
        assert_eq!(received[0].len(), FRAME_CAPACITY);
        assert_eq!(right.losses().too_long, 3);
    });
}

/// A router that was stopped does not send them afterwards.
#[test]
fn frames_that_waited_for_more_than_a_second_are_counted_and_left_out() {
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut left, mut right) = (open(0, "left"), open(1, "right"));
        let mut burst = pool.take(3);
        burst.iter_mut().for_each(|slot| assert!(slot.set_frame(&frame(1, 60))));
        send(&mut left, &mut burst);
        left.reclaim(&mut burst);
        pool.give(&mut burst);
        thread::sleep(Duration::from_millis(1100));
        let frames = [frame(2, 60), frame(3, 60)];
        assert_eq!(carry(&mut left, &mut right, &mut pool, &frames), frames);
        assert_eq!(right.losses(), PortLosses { stale: 3, ..PortLosses::default() });
    });
}

#[test]
fn frames_without_room_are_counted() {
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let options = PacketOptions { ring_frames: 16, ..PacketOptions::default() };
        let (mut left, mut right) = (open(0, "left"), PacketPort::open(1, "right", options).unwrap());
        let (mut sent, mut overruns, mut burst) = (0, 0, Burst::new());
        while overruns == 0 {
            let mut frames = pool.take(BURST / 2);
            frames.iter_mut().for_each(|slot| _ = slot.set_frame(&frame(sent, 60)));
            sent += frames.len() as u32;
            send(&mut left, &mut frames);
            left.reclaim(&mut frames);
            pool.give(&mut frames);
            overruns += right.overruns().unwrap();
            // The kernel's own queue between the two would overflow silently.
            thread::sleep(Duration::from_millis(1));
            assert!(sent < 1 << 20, "a ring of a few frames held all of them");
        }
        let mut received = 0;
        right.recycle(&mut pool.take(BURST));
        let are_all_counted = (0..PATIENCE).any(|_| {
            received += right.receive(&mut burst, BURST).unwrap() as u64;
            overruns += right.overruns().unwrap();
            right.recycle(&mut burst);
            thread::sleep(Duration::from_millis(1));
            received + overruns >= sent.into()
        });
        assert!(are_all_counted, "of {sent} frames {received} were received and {overruns} found no room");
        assert_eq!((received + overruns, right.overruns().unwrap()), (sent.into(), 0));
    });
}

/// A queueing discipline, or an egress rule of tc or nftables: the kernel returns the same error for all.
#[test]
fn frames_that_the_kernel_drops_at_egress_block_no_others() {
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        command("tc qdisc add dev left root tbf rate 1gbit burst 1000 limit 100000");
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut left, mut right) = (open(0, "left"), open(1, "right"));
        let frames = [frame(1, 60), frame(2, 1500), frame(3, 1500), frame(4, 60)];
        let mut burst = pool.take(frames.len());
        burst.iter_mut().zip(&frames).for_each(|(slot, frame)| _ = slot.set_frame(frame));
        right.recycle(&mut pool.take(2));
        assert_eq!(left.transmit(&mut burst).unwrap(), 4);
        assert_eq!(receive(&mut right, &mut pool, 2), [frame(1, 60), frame(4, 60)]);
        assert_eq!((left.losses().dropped, left.refused(), burst.len()), (2, 0, 0));
    });
}

/// A frame between two hosts, which differ by the number, and its owner among so many workers.
fn between_hosts(number: u8, workers: usize) -> [(Vec<u8>, usize); 2] {
    let (mut short, mut long) = (inet(46), inet6(46));
    let (from, to) = ([10, 0, number, 1], [198, 51, 100, number / 3]);
    short[26..30].copy_from_slice(&from);
    short[30..34].copy_from_slice(&to);
    let (from6, to6) = ([number ^ 0x35; 16], [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, number, 2, 3]);
    long[22..38].copy_from_slice(&from6);
    long[38..54].copy_from_slice(&to6);
    let owner_of = |from: IpAddr, to: IpAddr| owner(from.into(), to.into(), workers);
    [(short, owner_of(from.into(), to.into())), (long, owner_of(from6.into(), to6.into()))]
}

/// What the kernel's program computes and what workers compute are the same.
#[test]
fn each_port_of_a_group_gets_the_packets_that_its_worker_owns() {
    const WORKERS: usize = 3;
    in_namespace(|| {
        cable("left", "right", FRAME_CAPACITY);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let options = PacketOptions { spread: Spread::Owners, ..PacketOptions::default() };
        let mut left = open(0, "left");
        let mut group = PacketPort::open_group(1, "right", WORKERS, options).unwrap();
        let mut owners = [0; WORKERS];
        for (mut frame, owner) in (0..60).flat_map(|number| between_hosts(number, WORKERS)) {
            if owners[owner] % 3 == 1 {
                frame.splice(12..12, [0x81, 0, 0, 5]);
            }
            owners[owner] += 1;
            assert_eq!(carry(&mut left, &mut group[owner], &mut pool, &[frame.clone()]), [frame]);
        }
        assert!(owners.iter().all(|frames| *frames > 10), "{owners:?}");
    });
}

/// A frame with an IPv4 packet of this many bytes.
fn inet(len: usize) -> Vec<u8> {
    let mut frame = frame(4, 14 + len);
    frame[12..16].copy_from_slice(&[0x08, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&(len as u16).to_be_bytes());
    frame
}

/// The same with IPv6.
fn inet6(len: usize) -> Vec<u8> {
    let mut frame = frame(6, 14 + len);
    frame[12..18].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
    frame[18..20].copy_from_slice(&(len as u16 - 40).to_be_bytes());
    frame
}

/// Some switches and cards leave bytes behind the packet, and the kernel forwards it without them.
#[test]
fn packets_that_fit_the_link_are_sent_without_the_bytes_behind_them() {
    const MTU: usize = 1280;
    in_namespace(|| {
        cable("left", "right", MTU + 14);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut left, mut right) = (open(0, "left"), open(1, "right"));
        let fitting = [inet(MTU), inet6(MTU)];
        let tagged = fitting.clone().map(|mut frame| {
            frame.splice(12..12, [0x81, 0, 0, 5]);
            frame
        });
        let fitting = [fitting, tagged].concat();
        let long = [inet(MTU + 1), inet6(MTU + 1), frame(1, MTU + 32)];
        let with_trailer = fitting.iter().chain(&long).map(|frame| [&frame[..], &[0xaa; 18]].concat());
        let with_trailer: Vec<_> = with_trailer.collect();
        let mut burst = pool.take(fitting.len() + long.len());
        burst.iter_mut().zip(&with_trailer).for_each(|(slot, frame)| assert!(slot.set_frame(frame)));
        right.recycle(&mut pool.take(fitting.len()));
        assert_eq!(left.transmit(&mut burst).unwrap(), fitting.len() + long.len());
        assert_eq!(receive(&mut right, &mut pool, fitting.len()), fitting);
        assert_eq!(left.losses().unsendable, long.len() as u64);
        let mut free = Burst::new();
        left.reclaim(&mut free);
        let lengths = free.iter().map(|packet| packet.frame_len());
        assert!(lengths.eq(with_trailer.iter().map(Vec::len)), "as they were counted");
    });
}

#[test]
fn partial_checksums_are_finished() {
    in_namespace(|| {
        let socket = datagrams(1500);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut right = open(1, "right");
        for len in [1, 2, 100, 1472] {
            right.recycle(&mut pool.take(1));
            socket.send(&vec![7; len]).unwrap();
            let frame = receive(&mut right, &mut pool, 1).remove(0);
            let (addresses, datagram) = (&frame[26..34], &frame[34..]);
            let pseudo = Sum::ZERO.bytes(addresses).word(17).word(len as u16 + 8);
            assert_ne!(datagram[6..8], [0, 0]);
            assert!(pseudo.bytes(datagram).verifies(), "{len} bytes");
        }
    });
}

#[test]
fn flows_are_spread_over_workers_and_no_packet_is_duplicated() {
    in_namespace(|| {
        let _ = datagrams(1500);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut workers = PacketPort::open_group(1, "right", 3, PacketOptions::default()).unwrap();
        for worker in &mut workers {
            worker.recycle(&mut pool.take(90));
        }
        for port in 1000..1030 {
            let socket = UdpSocket::bind(("198.18.0.1", port)).unwrap();
            for _ in 0..3 {
                socket.send_to(&[7; 50], "198.18.0.2:9").unwrap();
            }
        }
        let mut seen: Vec<HashMap<u16, usize>> = vec![HashMap::new(); 3];
        let all_came = (0..PATIENCE).any(|_| {
            for (worker, flows) in workers.iter_mut().zip(&mut seen) {
                let mut burst = Burst::new();
                worker.receive(&mut burst, BURST).unwrap();
                for packet in burst.iter() {
                    let port = u16::from_be_bytes([packet.frame()[34], packet.frame()[35]]);
                    *flows.entry(port).or_default() += 1;
                }
                pool.give(&mut burst);
            }
            thread::sleep(Duration::from_millis(1));
            seen.iter().flat_map(HashMap::values).sum::<usize>() >= 90
        });
        assert!(all_came, "{seen:?}");
        assert!(seen.iter().all(|flows| !flows.is_empty() && flows.values().all(|packets| *packets == 3)));
        assert_eq!(seen.iter().map(HashMap::len).sum::<usize>(), 30, "a flow stays with its worker");
    });
}

#[test]
fn errors_name_the_interface_and_how_to_fix_it() {
    let missing = PacketPort::open(0, "fv-none", PacketOptions::default()).err().unwrap().to_string();
    assert!(missing.starts_with("interface fv-none cannot be found: "), "{missing}");
    assert!(missing.ends_with("`ip link` lists the interfaces there are"), "{missing}");
}
