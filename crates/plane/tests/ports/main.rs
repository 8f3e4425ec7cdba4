//! Ports deliver every frame in order, and return every slot.

// Helpers of a test panic on failure, as the test itself does.
#![allow(clippy::unwrap_used, clippy::panic)]

#[cfg(all(feature = "bpf", target_os = "linux"))]
mod classify;
mod conformance;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod killed;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod known_flow;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod known_windows;
#[cfg(target_os = "linux")]
mod large_frames;
#[cfg(target_os = "linux")]
mod memif;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod packets;
#[cfg(target_os = "linux")]
mod promiscuous;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod reinject;
#[cfg(target_os = "linux")]
mod tap;
#[cfg(target_os = "linux")]
mod timed;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp;

use std::collections::HashSet;
use std::io::{Cursor, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, BURST, Burst, FRAME_CAPACITY, Slot};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::port::memory::{self, link};
use fullview_plane::port::pcap::{CapturePort, CaptureReader, CaptureWriter};
use fullview_plane::port::{Port, PortError};
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_plane::wire::ethernet::{EtherType, Frame, Mac};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{NextHop, Rib};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapTsResolution, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::{DataLink, Endianness};

fn number(packet: &Slot) -> u64 {
    u64::from_be_bytes(packet.frame()[..8].try_into().unwrap())
}

fn stamp(packet: &mut Slot, number: u64) {
    packet.set_frame(&number.to_be_bytes());
}

#[test]
fn a_link_takes_what_fits_and_leaves_the_rest_in_order() {
    let mut arena = Arena::new(10);
    let (mut sender, mut receiver) = link(6);
    let mut burst = Burst::new();
    for (n, packet) in arena.packets().enumerate() {
        stamp(packet, n as u64);
        burst.push(packet).unwrap();
    }
    assert_eq!((sender.send(&mut burst), burst.len(), sender.refused()), (6, 4, 4));
    assert_eq!(burst.iter().map(|packet| number(packet)).collect::<Vec<_>>(), [6, 7, 8, 9]);
    let mut out = Burst::new();
    assert_eq!((receiver.receive(&mut out, 4), receiver.receive(&mut out, 100)), (4, 2));
    assert_eq!(receiver.receive(&mut out, 1), 0);
    assert_eq!(out.iter().map(|packet| number(packet)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!((receiver.recycle(&mut out), out.len()), (6, 0));
    assert_eq!((sender.reclaim(&mut burst), burst.len()), (6, 10));
}

#[test]
fn a_receiver_is_finished_once_the_sender_is_gone_and_the_ring_empty() {
    let mut arena = Arena::new(1);
    let (mut sender, mut receiver) = link(4);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    sender.send(&mut burst);
    assert!(!receiver.is_finished() && !sender.is_abandoned());
    drop(sender);
    assert!(!receiver.is_finished(), "one packet is left");
    receiver.receive(&mut burst, 1);
    assert!(receiver.is_finished());
}

#[test]
fn two_threads_lose_nothing_and_keep_the_order() {
    const SLOTS: usize = 300;
    const PACKETS: u64 = 50_000;
    let mut arena = Arena::new(SLOTS);
    let (mut sender, mut receiver) = link(SLOTS);
    let mut pool = Vec::from_iter(arena.packets());
    let free = thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let (mut next, mut burst) = (0, Burst::new());
            while next < PACKETS {
                while burst.len() < 64 && next < PACKETS {
                    let Some(packet) = pool.pop() else { break };
                    stamp(packet, next);
                    next += 1;
                    burst.push(packet).unwrap();
                }
                while !burst.is_empty() && sender.send(&mut burst) == 0 {
                    thread::yield_now();
                }
                if sender.reclaim(&mut burst) == 0 {
                    thread::yield_now();
                }
                pool.extend(burst.drain());
            }
            let mut burst = Burst::new();
            while pool.len() < SLOTS {
                sender.reclaim(&mut burst);
                pool.extend(burst.drain());
                thread::yield_now();
            }
            pool
        });
        let (mut expected, mut burst) = (0, Burst::new());
        while expected < PACKETS {
            if receiver.receive(&mut burst, 50) == 0 {
                thread::yield_now();
            }
            for packet in burst.iter() {
                assert_eq!(number(packet), expected);
                expected += 1;
            }
            receiver.recycle(&mut burst);
            assert!(burst.is_empty(), "the free ring holds all slots");
        }
        producer.join().unwrap()
    });
    let distinct: HashSet<_> = free.iter().map(|packet| packet.frame().as_ptr()).collect();
    assert_eq!(distinct.len(), SLOTS);
}

#[test]
fn connected_ports_carry_packets_both_ways_and_set_the_port_number() {
    let mut arena = Arena::new(2);
    let (mut left, mut right) = memory::pair([5, 8], 4);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    assert_eq!(left.transmit(&mut burst).unwrap(), 2);
    assert_eq!(right.receive(&mut burst, BURST).unwrap(), 2);
    assert!(burst.iter().all(|packet| packet.port == 8));
    assert_eq!(right.transmit(&mut burst).unwrap(), 2);
    assert_eq!(left.receive(&mut burst, 1).unwrap(), 1);
    assert_eq!(burst[0].port, 5);
    assert_eq!((left.recycle(&mut burst), right.reclaim(&mut burst)), (1, 1));
    assert_eq!((left.refused(), left.is_finished()), (0, false));
}

fn frames() -> Vec<Vec<u8>> {
    [60, 61, 1514, FRAME_CAPACITY].iter().map(|len| (0..*len).map(|n| n as u8).collect()).collect()
}

fn read_all(bytes: &[u8]) -> Result<Vec<(Duration, Vec<u8>)>, PortError> {
    let mut arena = Arena::new(1);
    let slot = arena.packets().next().unwrap();
    let mut reader = CaptureReader::new(Path::new("test.pcap"), Cursor::new(bytes))?;
    let mut read = Vec::new();
    while let Some(time) = reader.read_into(slot)? {
        read.push((time, slot.frame().to_vec()));
    }
    assert!(reader.is_finished());
    Ok(read)
}

fn pcap(header: PcapHeader, packets: &[(Duration, u32, &[u8])]) -> Vec<u8> {
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (time, len, data) in packets {
        writer.write_packet(&PcapPacket::new(*time, *len, *data).unwrap()).unwrap();
    }
    writer.into_inner()
}

fn pcapng(endianness: Endianness, linktype: DataLink, packets: &[(u32, &[u8])]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    writer.write_pcapng_block(InterfaceDescriptionBlock { linktype, snaplen: 0, options: vec![] }).unwrap();
    for (original_len, data) in packets {
        let packet =
            EnhancedPacketBlock { original_len: *original_len, data: (*data).into(), ..Default::default() };
        writer.write_pcapng_block(packet).unwrap();
    }
    writer.into_inner()
}

#[test]
fn captures_of_every_kind_are_read() {
    let time = Duration::new(1_700_000_000, 123_456_000);
    for ts_resolution in [PcapTsResolution::MicroSecond, PcapTsResolution::NanoSecond] {
        for endianness in [Endianness::Big, Endianness::Little] {
            let header = PcapHeader { ts_resolution, endianness, ..Default::default() };
            let frames = frames();
            let packets: Vec<_> = frames.iter().map(|frame| (time, frame.len() as u32, &frame[..])).collect();
            let expected: Vec<_> = frames.iter().map(|frame| (time, frame.clone())).collect();
            assert_eq!(read_all(&pcap(header, &packets)).unwrap(), expected);
        }
    }
    for endianness in [Endianness::Big, Endianness::Little] {
        let frames = frames();
        let packets: Vec<_> = frames.iter().map(|frame| (frame.len() as u32, &frame[..])).collect();
        let read = read_all(&pcapng(endianness, DataLink::ETHERNET, &packets)).unwrap();
        assert_eq!(read.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>(), frames);
    }
}

#[test]
fn unusable_captures_are_refused_by_name_and_number() {
    let (time, short, long) = (Duration::ZERO, [7; 60], [7; FRAME_CAPACITY + 1]);
    let (good, cut) = ((time, 60, &short[..]), (time, 61, &short[..]));
    let too_long = (time, long.len() as u32, &long[..]);
    let radiotap = PcapHeader { datalink: DataLink::IEEE802_11_RADIOTAP, ..Default::default() };
    let mut truncated = pcap(PcapHeader::default(), &[good, good]);
    truncated.pop();
    for (bytes, expected) in [
        (vec![], "test.pcap: neither pcap nor pcapng"),
        (b"\x1f\x8b\x08\x00".repeat(10), "test.pcap: neither pcap nor pcapng"),
        (b"\x0a\x0d\x0d\x0a".repeat(10), "test.pcap: neither pcap nor pcapng"),
        (pcap(radiotap, &[]), "is not Ethernet"),
        (pcap(PcapHeader::default(), &[good, cut]), "test.pcap: packet 2: only 60 of 61 bytes were captured"),
        (pcap(PcapHeader::default(), &[too_long]), "test.pcap: packet 1: 2105 bytes are longer"),
        (truncated, "test.pcap: packet 2: "),
        (pcapng(Endianness::Big, DataLink::ETHERNET, &[(61, &short)]), "test.pcap: packet 1: only 60 of 61"),
        (pcapng(Endianness::Big, DataLink::RAW, &[(60, &short)]), "test.pcap: packet 1: link type RAW"),
    ] {
        let error = read_all(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "'{error}' instead of '{expected}'");
    }
    let missing = CaptureReader::open(Path::new("/nonexistent/file.pcap")).map(|_| ()).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/file.pcap: "), "{missing}");
}

#[test]
fn a_reader_has_no_frames_after_an_error() {
    let bytes =
        pcap(PcapHeader::default(), &[(Duration::ZERO, 61, &[7; 60]), (Duration::ZERO, 60, &[7; 60])]);
    let mut arena = Arena::new(1);
    let slot = arena.packets().next().unwrap();
    let mut reader = CaptureReader::new(Path::new("x"), Cursor::new(bytes)).unwrap();
    assert!(reader.read_into(slot).is_err());
    assert_eq!(reader.read_into(slot).unwrap(), None);
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let mut writer = CaptureWriter::create(&path).unwrap();
    let time = Duration::new(1_700_000_000, 123_456_789);
    for frame in frames() {
        writer.write(time, &frame).unwrap();
    }
    writer.flush().unwrap();
    let read = read_all(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(read, frames().into_iter().map(|frame| (time, frame)).collect::<Vec<_>>());
}

/// A full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_reports_write_errors() {
    let error = CaptureWriter::new(Path::new("out.pcap"), Full).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("out.pcap: ") && error.contains("no storage space"), "{error}");
}

fn inet_frame(destination: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let mut frame = Frame::new_unchecked(&mut bytes);
    frame.set_destination(Mac([2, 0, 0, 0, 0, 1]));
    frame.set_outer_ethertype(EtherType::IPV4);
    let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
    packet.set_header_len(20);
    packet.set_total_len(46);
    packet.set_ttl(64);
    packet.set_source(0xc612_0001);
    packet.set_destination(destination);
    packet.fill_checksum();
    bytes
}

fn router() -> Forwarder {
    let mut rib = Rib::<u32>::default();
    rib.announce("198.19.0.0/16".parse().unwrap(), NextHop(1));
    let mut adjacencies = Adjacencies::new();
    adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 1, mac: Mac([2, 0, 0, 0, 0, 3]) });
    let interfaces = [0, 1].map(|port| Interface::new(port, Mac([2, 0, 0, 0, 0, port as u8 + 1])));
    let (inet, inet6) = (Linear.compile(&rib).unwrap(), Linear.compile(&Rib::<u128>::default()).unwrap());
    let table = TableReaders::fixed(inet.fib(), inet6.fib());
    Forwarder::new(ViewReader::fixed(
        View::new(ViewParts::new(interfaces.into(), adjacencies, table)).unwrap(),
    ))
}

#[test]
fn a_capture_is_forwarded_from_file_to_file_with_few_slots() {
    let good = inet_frame(0xc613_0001);
    let unroutable = inet_frame(0x0808_0808);
    let frames: Vec<_> = (0..100).map(|n| if n % 4 == 0 { &unroutable } else { &good }).collect();
    let packets: Vec<_> = frames.iter().map(|frame| (Duration::ZERO, 60, &frame[..])).collect();
    let reader =
        CaptureReader::new(Path::new("in"), Cursor::new(pcap(PcapHeader::default(), &packets))).unwrap();
    let mut arena = Arena::new(7);
    let mut inside = CapturePort::<_, Vec<u8>>::new(0, Some(reader), None);
    let writer = CaptureWriter::new(Path::new("out"), Vec::new()).unwrap();
    let mut outside = CapturePort::<Cursor<Vec<u8>>, _>::new(1, None, Some(writer));
    let (mut burst, mut out, mut free) = (Burst::new(), Burst::new(), Burst::new());
    free.fill(arena.packets());
    let mut router = router();
    while !inside.is_finished() {
        inside.recycle(&mut free);
        inside.receive(&mut burst, BURST).unwrap();
        router.process(&mut burst, &mut out, &mut free);
        outside.transmit(&mut out).unwrap();
        outside.reclaim(&mut free);
    }
    assert_eq!((out.len(), burst.len()), (0, 0), "100 packets came through 7 slots: none can have been lost");
    assert_eq!((router.counters().sent().packets, router.counters().dropped()), (75, 25));
    let written = outside.into_inner().1.unwrap().into_inner();
    let read = read_all(&written).unwrap();
    assert_eq!(read.len(), 75);
    assert!(read.iter().all(|(_, frame)| frame[ipv4_ttl()] == 63));
}

const fn ipv4_ttl() -> usize {
    14 + 8
}

#[test]
fn a_port_without_a_side_refuses_or_is_finished() {
    let mut arena = Arena::new(3);
    let mut port = CapturePort::<Cursor<Vec<u8>>, Vec<u8>>::new(0, None, None);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    assert_eq!((port.transmit(&mut burst).unwrap(), burst.len(), port.refused()), (0, 3, 3));
    assert!(port.is_finished());
    assert_eq!(port.receive(&mut burst, 1).unwrap(), 0);
}

#[test]
fn generator_router_and_sink_on_two_threads_conserve_packets() {
    const SLOTS: usize = 200;
    const PACKETS: u64 = 20_000;
    let mut arena = Arena::new(SLOTS);
    let (mut to_router, mut router_in) = link(SLOTS);
    let (mut router_out, mut from_router) = link(SLOTS);
    let mut pool = Vec::from_iter(arena.packets());
    let (good, unroutable) = (inet_frame(0xc613_0001), inet_frame(0x0808_0808));
    let (mut made, mut received, mut returned) = (0u64, 0u64, 0u64);
    let counters = thread::scope(|scope| {
        let routing = scope.spawn(move || {
            let mut router = router();
            let (mut burst, mut out, mut free) = (Burst::new(), Burst::new(), Burst::new());
            while !router_in.is_finished() {
                if router_in.receive(&mut burst, 64) == 0 {
                    thread::yield_now();
                }
                router.process(&mut burst, &mut out, &mut free);
                router_out.send(&mut out);
                router_in.recycle(&mut free);
                router_in.recycle(&mut out);
            }
            (router.take_counters(), router_out.refused())
        });
        let mut burst = Burst::new();
        while made < PACKETS {
            for packet in pool.drain(pool.len().saturating_sub(64)..) {
                packet.set_frame(if made % 5 == 0 { &unroutable } else { &good });
                packet.port = 0;
                made += 1;
                burst.push(packet).unwrap();
            }
            to_router.send(&mut burst);
            assert!(burst.is_empty(), "the ring holds all slots");
            received += from_router.receive(&mut burst, 128) as u64;
            returned += to_router.reclaim(&mut burst) as u64;
            pool.extend(burst.drain());
            thread::yield_now();
        }
        while received + returned < made {
            received += from_router.receive(&mut burst, 128) as u64;
            returned += to_router.reclaim(&mut burst) as u64;
            pool.extend(burst.drain());
            thread::yield_now();
        }
        drop(to_router);
        routing.join().unwrap()
    });
    let (counters, refused) = counters;
    assert_eq!(pool.len(), SLOTS);
    assert_eq!((counters.received().packets, refused), (made, 0));
    assert_eq!((counters.sent().packets, counters.dropped()), (received, returned));
    assert_eq!(returned, made.div_ceil(5));
}
