//! Tests that the loop and the explanation judge addresses alike, and that no rule of either table is idle.
//!
//! The catalogue below is a third list, of the special blocks in the registries of IANA. Its addresses are the first and
//! the last one of each block and their two neighbours outside of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{Address, NextHop, Prefix, Rib};

use crate::adjacency::{Adjacencies, Adjacency};
use crate::burst::{Arena, BURST, Burst, Packet};
use crate::explain::addresses::{self, AddressRule};
use crate::explain::explain;
use crate::forward::Forwarder;
use crate::forward::martian::{self, AddressBlock, INET_BLOCKS, INET6_BLOCKS};
use crate::interface::Interface;
use crate::verdict::Verdict;
use crate::view::{Policy, TableReaders, View, ViewParts, Views};
use crate::wire::ethernet::{EtherType, Mac};
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::{self, Ipv6Packet};

/// Special blocks of IPv4: RFC 6890, RFC 5771 and their successors.
const INET_CATALOGUE: &[&str] = &[
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "224.0.0.0/24",
    "224.0.1.0/24",
    "232.0.0.0/8",
    "233.0.0.0/8",
    "239.0.0.0/8",
    "240.0.0.0/4",
    "255.255.255.255/32",
];

/// Special blocks of IPv6: RFC 6890, RFC 4291, RFC 7346 and their successors.
const INET6_CATALOGUE: &[&str] = &[
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001::/32",
    "2001:2::/48",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "ff00::/16",
    "ff01::/16",
    "ff02::/16",
    "ff02::1:ff00:0/104",
    "ff03::/16",
    "ff04::/16",
    "ff05::/16",
    "ff08::/16",
    "ff0e::/16",
    "ff0f::/16",
    "ff11::/16",
    "ff12::/16",
    "ff1e::/16",
    "fff1::/16",
    "fff2::/16",
];

/// The first and last addresses of each block, and those just outside.
fn boundaries<A: Address>(catalogue: &[&str]) -> Vec<A>
where
    Prefix<A>: std::str::FromStr<Err: std::fmt::Debug>,
{
    let mut addresses = BTreeSet::new();
    for text in catalogue {
        let prefix: Prefix<A> = text.parse().unwrap();
        let (first, last) = (prefix.first(), prefix.last());
        let outside = [first.checked_sub(&A::one()), last.checked_add(&A::one())];
        addresses.extend([first, last].into_iter().chain(outside.into_iter().flatten()));
    }
    addresses.into_iter().collect()
}

/// Every boundary as source with every boundary as destination, strict or not.
fn cases<A: Address>(catalogue: &[&str]) -> Vec<(A, A, bool)>
where
    Prefix<A>: std::str::FromStr<Err: std::fmt::Debug>,
{
    let addresses = boundaries::<A>(catalogue);
    let of_source =
        |source: &A| addresses.iter().map(|destination| (*source, *destination)).collect::<Vec<_>>();
    let pairs = addresses.iter().flat_map(of_source);
    pairs
        .flat_map(|(source, destination)| [(source, destination, true), (source, destination, false)])
        .collect()
}

fn explained<'r>(
    rules: impl Iterator<Item = &'r AddressRule>,
    ends: [IpAddr; 2],
    strict: bool,
) -> Option<Verdict> {
    addresses::judge_by(rules, ends[0], ends[1], strict)
}

/// Whether both tables give the same verdict in every case.
fn agree<A: Address>(blocks: &[&AddressBlock<A>], rules: &[&AddressRule], cases: &[(A, A, bool)]) -> bool {
    cases.iter().all(|(source, destination, strict)| {
        let ends = [*source, *destination].map(|addr| addr.to_ip().into());
        let by_loop = martian::judge_by(|| blocks.iter().copied(), *source, *destination, *strict);
        by_loop == explained(rules.iter().copied(), ends, *strict)
    })
}

/// The items of a list without the one at `removed`.
fn without<T>(items: &[T], removed: usize) -> Vec<&T> {
    items.iter().enumerate().filter(|(at, _)| *at != removed).map(|(_, item)| item).collect()
}

/// The rules whose removal no case of either family notices.
fn idle_rules(inet: &[(u32, u32, bool)], inet6: &[(u128, u128, bool)]) -> Vec<&'static str> {
    let (blocks, blocks6): (Vec<_>, Vec<_>) = (INET_BLOCKS.iter().collect(), INET6_BLOCKS.iter().collect());
    let is_idle = |at: &usize| {
        let rules = without(addresses::RULES, *at);
        agree(&blocks, &rules, inet) && agree(&blocks6, &rules, inet6)
    };
    (0..addresses::RULES.len()).filter(is_idle).map(|at| addresses::RULES[at].name).collect()
}

/// The blocks whose removal no case notices.
fn idle_blocks<A: Address>(
    blocks: &'static [AddressBlock<A>],
    cases: &[(A, A, bool)],
) -> Vec<&'static AddressBlock<A>> {
    let rules: Vec<_> = addresses::RULES.iter().collect();
    let is_idle = |at: &usize| agree(&without(blocks, *at), &rules, cases);
    (0..blocks.len()).filter(is_idle).map(|at| &blocks[at]).collect()
}

#[test]
fn both_tables_agree_and_the_removal_of_any_rule_shows() {
    let (inet, inet6) = (cases::<u32>(INET_CATALOGUE), cases::<u128>(INET6_CATALOGUE));
    let rules: Vec<_> = addresses::RULES.iter().collect();
    assert!(agree(&INET_BLOCKS.iter().collect::<Vec<_>>(), &rules, &inet));
    assert!(agree(&INET6_BLOCKS.iter().collect::<Vec<_>>(), &rules, &inet6));
    let idle = idle_rules(&inet, &inet6);
    assert!(idle.is_empty(), "no case needs {idle:?}");
    let idle = (idle_blocks(INET_BLOCKS, &inet), idle_blocks(INET6_BLOCKS, &inet6));
    assert!(idle.0.is_empty() && idle.1.is_empty(), "no case needs {idle:?}");
}

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// A view in which every destination has a route.
fn view(drops_martians: bool) -> View {
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    inet.announce("0.0.0.0/0".parse().unwrap(), NextHop(1));
    inet6.announce("::/0".parse().unwrap(), NextHop(1));
    let table =
        TableReaders::fixed(Linear.compile(&inet).unwrap().fib(), Linear.compile(&inet6).unwrap().fib());
    let mut adjacencies = Adjacencies::new();
    adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 0, mac: Mac([2, 0, 0, 0, 0, 9]) });
    let parts = ViewParts::new(vec![Interface::new(0, ROUTER)], adjacencies, table);
    View::new(ViewParts { policy: Policy { drops_martians, ..Policy::default() }, ..parts }).unwrap()
}

fn frame(ethertype: EtherType, packet: &[u8]) -> Vec<u8> {
    [&ROUTER.0[..], &[2, 0, 0, 0, 0, 8], &ethertype.0.to_be_bytes(), packet].concat()
}

fn inet_frame(source: u32, destination: u32) -> Vec<u8> {
    let mut bytes = [0; ipv4::HEADER];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_header_len(ipv4::HEADER);
    packet.set_total_len(ipv4::HEADER as u16);
    packet.set_ttl(64);
    packet.set_source(source);
    packet.set_destination(destination);
    packet.fill_checksum();
    frame(EtherType::IPV4, &bytes)
}

fn inet6_frame(source: u128, destination: u128) -> Vec<u8> {
    let mut bytes = [0; ipv6::HEADER];
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
    packet.set_class_and_flow(0, 0);
    packet.set_hop_limit(64);
    packet.set_source(source);
    packet.set_destination(destination);
    frame(EtherType::IPV6, &bytes)
}

/// The verdicts of the loop on a burst of frames, each with the frame as it came in.
fn forwarded(forwarder: &mut Forwarder, frames: &[Vec<u8>]) -> Vec<Verdict> {
    let mut arena = Arena::new(frames.len());
    let (mut burst, mut sent, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    for (packet, frame) in arena.packets().zip(frames) {
        assert!(packet.set_frame(frame));
        packet.port = 0;
        assert!(burst.push(packet).is_ok());
    }
    let slots: Vec<_> = burst.iter().map(address).collect();
    forwarder.process(&mut burst, &mut sent, &mut rejected);
    let all: Vec<_> =
        sent.iter().chain(rejected.iter()).map(|packet| (address(packet), packet.verdict)).collect();
    let verdict = |slot: &usize| all.iter().find(|(of, _)| of == slot).map(|(_, verdict)| *verdict);
    slots.iter().map(|slot| verdict(slot).unwrap()).collect()
}

fn address(packet: &Packet<'_>) -> usize {
    std::ptr::from_ref(&**packet).addr()
}

/// The whole loop and the whole explanation on packets with these addresses.
fn loop_agrees_with_explain(frames: &[Vec<u8>], drops_martians: bool) {
    let views = Views::new(view(drops_martians));
    let mut forwarder = Forwarder::new(views.reader());
    for frames in frames.chunks(BURST) {
        for (frame, verdict) in frames.iter().zip(forwarded(&mut forwarder, frames)) {
            assert_eq!(explain(&views.current(), &(), 0, frame).verdict, verdict, "{frame:02x?}");
        }
    }
}

#[test]
fn the_loop_does_with_every_boundary_address_what_explain_says() {
    let (inet, inet6) = (cases::<u32>(INET_CATALOGUE), cases::<u128>(INET6_CATALOGUE));
    for strict in [true, false] {
        let of_policy = inet.iter().filter(|(_, _, of)| *of == strict);
        let frames: Vec<_> =
            of_policy.map(|(source, destination, _)| inet_frame(*source, *destination)).collect();
        loop_agrees_with_explain(&frames, strict);
        let of_policy = inet6.iter().filter(|(_, _, of)| *of == strict);
        let frames: Vec<_> =
            of_policy.map(|(source, destination, _)| inet6_frame(*source, *destination)).collect();
        loop_agrees_with_explain(&frames, strict);
    }
}
