//! The cache alone: what it believes, what it forgets, and that it stays within its bounds whatever happens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::host::limit::RateLimit;

const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);
const ANSWER: Evidence = Evidence::Answer { overrides: true };

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn key(host: u32) -> Key {
    (0, IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host)))
}

fn key6(host: u128) -> Key {
    (0, IpAddr::V6(Ipv6Addr::from_bits(0xfe80 << 112 | host)))
}

fn packet(number: u8) -> QueuedPacket {
    QueuedPacket { packet: vec![number], interface: 7 }
}

fn cache(settings: NeighborSettings) -> NeighborCache {
    NeighborCache::new(1, settings)
}

fn numbers(waiting: &VecDeque<QueuedPacket>) -> Vec<u8> {
    waiting.iter().map(|waiting| waiting.packet[0]).collect()
}

#[test]
fn packets_wait_for_the_answer_and_newer_ones_displace_older() {
    let mut cache = cache(NeighborSettings { queue: 2, ..NeighborSettings::default() });
    assert_eq!(cache.wait(at(0), key(1), packet(1)), Queued::Ask);
    assert_eq!(cache.wait(at(1), key(1), packet(2)), Queued::Waits);
    assert_eq!(cache.wait(at(2), key(1), packet(3)), Queued::Waits);
    let learned = cache.learn(at(9), key(1), HERE, ANSWER);
    assert_eq!((learned.changed, numbers(&learned.released)), (true, vec![2, 3]));
    assert_eq!((cache.mac(key(1)), cache.queued), (Some(HERE), 0));
}

#[test]
fn who_does_not_answer_is_asked_three_times_and_given_up() {
    let mut cache = cache(NeighborSettings::default());
    cache.wait(at(0), key(1), packet(1));
    assert_eq!(cache.due(at(999)), None);
    for second in 1..=2 {
        assert_eq!(cache.due(at(second * 1000)), Some(Due::Ask(key(1), None)));
        assert_eq!(cache.due(at(second * 1000)), None);
    }
    assert_eq!(cache.due(at(3000)), Some(Due::Lost(key(1), VecDeque::from([packet(1)]))));
    assert_eq!((cache.next_deadline(), cache.incomplete, cache.queued), (None, 0, 0));
}

#[test]
fn an_old_answer_is_asked_for_again_where_it_came_from() {
    let mut cache = cache(NeighborSettings::default());
    cache.wait(at(0), key(1), packet(1));
    cache.learn(at(10), key(1), HERE, ANSWER);
    assert_eq!(cache.next_deadline(), Some(at(30_010)));
    assert_eq!(cache.due(at(30_010)), Some(Due::Ask(key(1), Some(HERE))));
    assert!(!cache.learn(at(30_020), key(1), HERE, ANSWER).changed);
    assert_eq!(cache.next_deadline(), Some(at(60_020)));
    for _ in 0..3 {
        let next = cache.next_deadline().unwrap();
        assert_eq!(cache.due(next), Some(Due::Ask(key(1), Some(HERE))));
        assert_eq!(cache.mac(key(1)), Some(HERE), "it is used as long as it is asked");
    }
    assert_eq!(cache.due(cache.next_deadline().unwrap()), Some(Due::Lost(key(1), VecDeque::new())));
}

#[test]
fn another_link_address_is_believed_as_rfc_4861_has_it() {
    let mut cache = cache(NeighborSettings::default());
    let (meek, unasked) = (Evidence::Answer { overrides: false }, Evidence::Unasked { overrides: true });
    cache.wait(at(0), key6(1), packet(1));
    cache.learn(at(1), key6(1), HERE, meek);
    assert!(!cache.learn(at(2), key6(1), THERE, meek).changed);
    assert_eq!(cache.entries[&key6(1)].state, Reachability::Stale, "but it will be asked soon");
    assert!(cache.learn(at(3), key6(1), THERE, unasked).changed);
    assert_eq!((cache.mac(key6(1)), cache.entries[&key6(1)].state), (Some(THERE), Reachability::Stale));
    cache.learn(at(4), key6(1), THERE, ANSWER);
    assert_eq!(cache.entries[&key6(1)].state, Reachability::Reachable);
}

#[test]
fn an_ipv4_address_does_not_change_hands_at_once() {
    let mut cache = cache(NeighborSettings::default());
    cache.wait(at(0), key(1), packet(1));
    cache.learn(at(1), key(1), HERE, ANSWER);
    assert!(!cache.learn(at(1000), key(1), THERE, ANSWER).changed);
    assert!(cache.learn(at(1001), key(1), THERE, ANSWER).changed);
}

#[test]
fn nobody_is_learnt_who_neither_asked_nor_was_asked() {
    let mut cache = cache(NeighborSettings::default());
    assert_eq!(cache.learn(at(0), key(1), HERE, ANSWER), Learned::default());
    assert_eq!(cache.learn(at(0), key(1), HERE, Evidence::Unasked { overrides: true }), Learned::default());
    assert!(cache.learn(at(0), key(1), HERE, Evidence::Question).changed);
    cache.set_static(key(2), HERE);
    assert!(!cache.learn(at(9000), key(2), THERE, ANSWER).changed, "static ones stay");
}

/// RFC 6583: somebody sends to every address of a network, and those who are there stay reachable.
#[test]
fn a_scan_pushes_no_known_neighbour_out() {
    let settings = NeighborSettings { capacity: 300, incomplete: 100, ..NeighborSettings::default() };
    let limit = settings.resolutions;
    let mut cache = cache(settings);
    for host in 0..200 {
        cache.wait(at(0), key(host), packet(0));
        cache.learn(at(0), key(host), HERE, ANSWER);
    }
    let mut asked = 0;
    for step in 0..20_000u32 {
        let now = at(100 + u64::from(step) / 10);
        asked += u32::from(cache.wait(now, key(1000 + step), packet(0)) == Queued::Ask);
        assert!(cache.incomplete <= 100 && cache.timers.len() <= 300);
        while cache.due(now).is_some() {}
    }
    assert!((0..200).all(|host| cache.mac(key(host)) == Some(HERE)));
    assert!(asked <= limit.burst + limit.rate * 3, "{asked} of 20,000 were asked for");
    assert_eq!(cache.wait(at(4000), key(9), packet(0)), Queued::Waits, "known ones never wait for a token");
}

#[test]
fn strangers_who_ask_push_only_each_other_out() {
    let mut cache = cache(NeighborSettings { capacity: 4, ..NeighborSettings::default() });
    for host in 0..2 {
        cache.wait(at(0), key(host), packet(0));
        cache.learn(at(0), key(host), HERE, ANSWER);
    }
    let evicted: Vec<_> = (10..20)
        .filter_map(|host| cache.learn(at(1), key(host), THERE, Evidence::Question).evicted)
        .collect();
    assert_eq!((evicted.len(), cache.timers.len()), (8, 4));
    assert!(evicted.iter().all(|evicted| *evicted >= key(10)) && cache.mac(key(1)).is_some());
}

/// What can happen to the cache.
#[derive(Clone, Debug)]
enum Event {
    Wait(u32),
    Learn(u32, bool, u8),
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0u32..40).prop_map(Event::Wait),
        (0u32..40, any::<bool>(), 0u8..5).prop_map(|(host, here, kind)| Event::Learn(host, here, kind)),
        (0u64..40_000).prop_map(Event::Pass),
    ]
}

fn evidence(kind: u8) -> Evidence {
    match kind {
        0 | 1 => Evidence::Answer { overrides: kind == 1 },
        2 | 3 => Evidence::Unasked { overrides: kind == 3 },
        _ => Evidence::Question,
    }
}

fn check(cache: &NeighborCache) {
    let entries = || cache.entries.values();
    assert_eq!(cache.timers.len(), entries().filter(|entry| entry.state != Reachability::Static).count());
    assert_eq!(cache.incomplete, entries().filter(|entry| entry.state == Reachability::Incomplete).count());
    assert_eq!(cache.queued, entries().map(|entry| entry.queue.len()).sum::<usize>());
    assert!(cache.timers.len() <= cache.settings.capacity && cache.incomplete <= cache.settings.incomplete);
    assert!(cache.queued <= cache.settings.queued);
    assert!(entries().all(|entry| entry.queue.len() <= cache.settings.queue));
    assert!(entries().all(|entry| entry.queue.is_empty() || entry.state == Reachability::Incomplete));
}

proptest! {
    #[test]
    fn bounds_hold_whatever_happens(events in prop::collection::vec(event(), 1..400)) {
        let settings = NeighborSettings {
            capacity: 10,
            incomplete: 4,
            queue: 3,
            queued: 6,
            resolutions: RateLimit { rate: 100, burst: 5 },
            ..NeighborSettings::default()
        };
        let (mut cache, mut now) = (cache(settings), at(1));
        cache.set_static(key(0), HERE);
        for event in events {
            match event {
                Event::Wait(host) if cache.mac(key(host)).is_none() => {
                    cache.wait(now, key(host), packet(0));
                }
                Event::Wait(_) => {}
                Event::Learn(host, here, kind) => {
                    cache.learn(now, key(host), if here { HERE } else { THERE }, evidence(kind));
                }
                Event::Pass(millis) => {
                    now += at(millis);
                    while cache.due(now).is_some() {}
                }
            }
            check(&cache);
            prop_assert_eq!(cache.mac(key(0)), Some(HERE));
            prop_assert!(cache.next_deadline().is_none_or(|next| next > now), "all that was due is done");
        }
    }
}
