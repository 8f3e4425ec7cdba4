//! The cache alone: which link addresses it accepts, what it removes, and that it keeps its bounds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::host::limit::RateLimit;

const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);
const REPLY: Evidence = Evidence::Solicited { overrides: true };

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn key(host: u32) -> NeighborId {
    NeighborId { interface: 0, ip: IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host)) }
}

fn key6(host: u128) -> NeighborId {
    NeighborId { interface: 0, ip: IpAddr::V6(Ipv6Addr::from_bits(0xfe80 << 112 | host)) }
}

fn packet(number: u8) -> QueuedPacket {
    packet_of(1, number)
}

/// A packet that the station with this number sent.
fn packet_of(station: u32, number: u8) -> QueuedPacket {
    QueuedPacket { packet: vec![number], interface: 7, source: key(station).ip, is_own: false }
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
    assert_eq!(cache.enqueue(at(0), key(1), packet(1)), Enqueued::Solicit { evicted: None });
    assert_eq!(cache.enqueue(at(1), key(1), packet(2)), Enqueued::Waits);
    assert_eq!(cache.enqueue(at(2), key(1), packet(3)), Enqueued::Waits);
    let update = cache.learn(at(9), key(1), HERE, REPLY);
    assert_eq!((update.changed, numbers(&update.released)), (true, vec![2, 3]));
    assert_eq!((cache.mac(key(1)), cache.packets_dropped), (Some(HERE), 1));
}

#[test]
fn a_neighbour_is_asked_once_at_a_time_whatever_the_settings() {
    let settings = NeighborSettings { retransmit: Duration::ZERO, probes: u32::MAX, ..Default::default() };
    let mut cache = cache(settings);
    cache.enqueue(at(0), key(1), packet(1));
    assert_eq!(cache.next_timeout(at(0)), None, "the caller has just asked");
    assert_eq!(cache.next_timeout(at(1)), Some(NeighborTimeout::Solicit(key(1), None)));
    assert_eq!(cache.next_timeout(at(1)), None);
}

#[test]
fn a_silent_neighbour_is_lost_after_three_requests() {
    let mut cache = cache(NeighborSettings::default());
    cache.enqueue(at(0), key(1), packet(1));
    assert_eq!(cache.next_timeout(at(999)), None);
    for second in 1..=2 {
        assert_eq!(cache.next_timeout(at(second * 1000)), Some(NeighborTimeout::Solicit(key(1), None)));
        assert_eq!(cache.next_timeout(at(second * 1000)), None);
    }
    assert_eq!(
        cache.next_timeout(at(3000)),
        Some(NeighborTimeout::Lost(key(1), VecDeque::from([packet(1)])))
    );
    assert_eq!((cache.next_deadline(), cache.incomplete.len()), (None, 0));
}

#[test]
fn an_expired_answer_is_verified_by_unicast() {
    let mut cache = cache(NeighborSettings::default());
    cache.enqueue(at(0), key(1), packet(1));
    cache.learn(at(10), key(1), HERE, REPLY);
    assert_eq!(cache.next_deadline(), Some(at(30_010)));
    assert_eq!(cache.next_timeout(at(30_010)), Some(NeighborTimeout::Solicit(key(1), Some(HERE))));
    assert!(!cache.learn(at(30_020), key(1), HERE, REPLY).changed);
    assert_eq!(cache.next_deadline(), Some(at(60_020)));
    for _ in 0..3 {
        let next = cache.next_deadline().unwrap();
        assert_eq!(cache.next_timeout(next), Some(NeighborTimeout::Solicit(key(1), Some(HERE))));
        assert_eq!(cache.mac(key(1)), Some(HERE), "the link address is used while it is verified");
    }
    assert_eq!(
        cache.next_timeout(cache.next_deadline().unwrap()),
        Some(NeighborTimeout::Lost(key(1), VecDeque::new()))
    );
}

#[test]
fn another_link_address_is_accepted_by_the_rules_of_rfc_4861() {
    let mut cache = cache(NeighborSettings::default());
    let (weak, unsolicited) =
        (Evidence::Solicited { overrides: false }, Evidence::Unsolicited { overrides: true });
    cache.enqueue(at(0), key6(1), packet(1));
    cache.learn(at(1), key6(1), HERE, weak);
    assert!(!cache.learn(at(2), key6(1), THERE, weak).changed);
    assert_eq!(cache.entries[&key6(1)].state, Reachability::Stale, "the link address is verified soon");
    assert!(cache.learn(at(3), key6(1), THERE, unsolicited).changed);
    assert_eq!((cache.mac(key6(1)), cache.entries[&key6(1)].state), (Some(THERE), Reachability::Stale));
    cache.learn(at(4), key6(1), THERE, REPLY);
    assert_eq!(cache.entries[&key6(1)].state, Reachability::Reachable);
}

#[test]
fn an_ipv4_address_is_locked_to_its_link_address_for_a_while() {
    let mut cache = cache(NeighborSettings::default());
    cache.enqueue(at(0), key(1), packet(1));
    cache.learn(at(1), key(1), HERE, REPLY);
    assert!(!cache.learn(at(1000), key(1), THERE, REPLY).changed);
    assert!(cache.learn(at(1001), key(1), THERE, REPLY).changed);
}

#[test]
fn only_stations_that_asked_or_were_asked_are_learned() {
    let mut cache = cache(NeighborSettings::default());
    assert_eq!(cache.learn(at(0), key(1), HERE, REPLY), CacheUpdate::default());
    assert_eq!(
        cache.learn(at(0), key(1), HERE, Evidence::Unsolicited { overrides: true }),
        CacheUpdate::default()
    );
    assert!(cache.learn(at(0), key(1), HERE, Evidence::Request).changed);
    cache.set_static(key(2), HERE);
    assert!(!cache.learn(at(9000), key(2), THERE, REPLY).changed, "a static neighbour does not change");
}

/// RFC 6583: a station sends to every address of a network, and the neighbours that exist stay reachable.
#[test]
fn a_scan_evicts_no_resolved_neighbour() {
    let settings = NeighborSettings { capacity: 300, incomplete: 100, ..NeighborSettings::default() };
    let limit = settings.resolutions;
    let mut cache = cache(settings);
    for host in 0..200 {
        cache.enqueue(at(0), key(host), packet_of(host, 0));
        cache.learn(at(0), key(host), HERE, REPLY);
    }
    let mut asked = 0;
    for step in 0..20_000u32 {
        let now = at(100 + u64::from(step) / 10);
        asked +=
            u32::from(cache.enqueue(now, key(1000 + step), packet(0)) == Enqueued::Solicit { evicted: None });
        assert!(cache.incomplete.len() <= 100 && cache.timers.len() <= 300);
        while cache.next_timeout(now).is_some() {}
    }
    assert!((0..200).all(|host| cache.mac(key(host)) == Some(HERE)));
    assert!(asked <= limit.burst + limit.rate * 3, "{asked} of 20,000 addresses were solicited");
    assert_eq!(
        cache.enqueue(at(4000), key(9), packet(0)),
        Enqueued::Waits,
        "a neighbour in the cache needs no token"
    );
}

#[test]
fn stations_that_only_asked_evict_only_each_other() {
    let mut cache = cache(NeighborSettings { capacity: 4, ..NeighborSettings::default() });
    for host in 0..2 {
        cache.enqueue(at(0), key(host), packet_of(host, 0));
        cache.learn(at(0), key(host), HERE, REPLY);
    }
    let evicted: Vec<_> =
        (10..20).filter_map(|host| cache.learn(at(1), key(host), THERE, Evidence::Request).evicted).collect();
    assert_eq!((evicted.len(), cache.timers.len()), (8, 4));
    assert!(evicted.iter().all(|evicted| *evicted >= key(10)) && cache.mac(key(1)).is_some());
}

fn on(interface: u16, host: u32) -> NeighborId {
    NeighborId { interface, ..key(host) }
}

/// Lets timers expire as the host stack does.
fn pass_to(cache: &mut NeighborCache, now: Duration) {
    while cache.next_timeout(now).is_some() {}
}

/// Whether a station can be resolved now that answers at once.
fn resolves(cache: &mut NeighborCache, now: Duration, id: NeighborId, packet: QueuedPacket) -> bool {
    cache.enqueue(now, id, packet);
    cache.learn(now, id, HERE, REPLY).changed
}

#[test]
fn packets_to_unused_addresses_do_not_stop_other_resolutions() {
    let mut cache = NeighborCache::new(2, NeighborSettings::default());
    let mut found = 0;
    for second in 0..12 {
        for burst in 0..10u64 {
            let now = at(second * 1000 + burst * 100);
            pass_to(&mut cache, now);
            // Every address gets as many packets as may wait for it.
            (0..320).for_each(|number| _ = cache.enqueue(now, key(1000 + number % 128), packet_of(2, 0)));
        }
        let (now, host) = (at(second * 1000 + 950), second as u32);
        found += u32::from(resolves(&mut cache, now, on(0, host), packet_of(3, 0)));
        found += u32::from(resolves(&mut cache, now, on(1, host), packet_of(3, 0)));
    }
    assert_eq!(found, 24);
}

#[test]
fn an_interface_with_many_unresolved_neighbours_makes_room_for_others() {
    let mut cache = NeighborCache::new(2, NeighborSettings { incomplete: 10, ..NeighborSettings::default() });
    cache.enqueue(at(0), on(1, 1), packet(1));
    (0..50).for_each(|host| _ = cache.enqueue(at(1), on(0, host), packet(0)));
    assert_eq!((cache.incomplete.len(), cache.packets_dropped), (10, 41));
    assert_eq!(numbers(&cache.learn(at(2), on(1, 1), HERE, REPLY).released), [1]);
    assert_eq!(numbers(&cache.learn(at(2), on(0, 49), HERE, REPLY).released), [0], "the youngest is left");
}

/// Sends to other addresses 20 times in a millisecond for a second, from the source that `source` names.
fn scan(cache: &mut NeighborCache, second: u64, source: impl Fn(u32) -> u32) {
    for number in 0..20_000 {
        let now = at(second * 1000 + u64::from(number) / 20);
        let scanned = u128::from(second) << 32 | 1 << 48 | u128::from(number);
        cache.enqueue(now, key6(scanned), packet_of(source(number), 0));
        pass_to(cache, now);
    }
}

#[test]
fn a_scan_by_one_station_leaves_other_stations_their_share() {
    let mut cache = cache(NeighborSettings::default());
    scan(&mut cache, 0, |_| 2);
    for host in 0..10 {
        assert!(resolves(&mut cache, at(1000), key6(host), packet_of(3, 0)), "{host}");
    }
}

#[test]
fn a_neighbour_that_is_asked_for_again_is_resolved_during_a_scan() {
    for source in [|_| 3, |number| number] {
        let mut cache = cache(NeighborSettings::default());
        let mut found = [false; 10];
        for second in 0..4 {
            scan(&mut cache, second, source);
            for (host, found) in (0..).zip(&mut found).filter(|(_, found)| !**found) {
                *found = resolves(&mut cache, at(second * 1000 + 999), key6(host), packet_of(3, 0));
            }
        }
        assert_eq!(found, [true; 10]);
    }
}

#[test]
fn stations_that_only_asked_leave_room_for_resolutions() {
    let mut cache = cache(NeighborSettings { capacity: 64, ..NeighborSettings::default() });
    assert_eq!(cache.enqueue(at(0), key(1), packet(1)), Enqueued::Solicit { evicted: None });
    (100..300).for_each(|host| _ = cache.learn(at(1), key(host), THERE, Evidence::Request));
    assert_eq!(cache.timers.len(), 56);
    // Now they are verified, and none of them can be evicted.
    pass_to(&mut cache, at(5001));
    assert!(resolves(&mut cache, at(5002), key(2), packet(1)));
}

/// Each station that is learned is a route that changes.
#[test]
fn stations_that_ask_are_learned_within_a_limit_on_each_interface() {
    let mut cache = NeighborCache::new(2, NeighborSettings::default());
    let limit = NeighborSettings::default().requests;
    let mut learned = 0;
    for host in 0..3000 {
        let now = at(u64::from(host));
        learned += u32::from(cache.learn(now, on(0, host), THERE, Evidence::Request).changed);
    }
    assert!((limit.burst..=limit.burst + 3 * limit.rate).contains(&learned), "{learned} of 3000");
    assert!(cache.learn(at(3000), on(1, 0), THERE, Evidence::Request).changed, "the other interface");
    assert!(resolves(&mut cache, at(3000), on(0, 2999), packet(1)), "one that was not learned");
    let asks = Evidence::Request;
    assert!(cache.learn(at(9000), on(0, 2999), THERE, asks).changed, "what is known may change");
}

#[test]
fn a_station_that_answers_for_many_addresses_does_not_stop_other_resolutions() {
    let capacity = NeighborSettings::default().capacity as u32;
    let mut cache = NeighborCache::new(2, NeighborSettings::default());
    let second = |host: u32| at(u64::from(host) * 1000 / 400);
    for host in 0..capacity {
        assert!(resolves(&mut cache, second(host), on(0, host), packet_of(host, 0)));
    }
    // The station goes on, and asks for addresses that no station has.
    for number in 0..600 {
        let (now, host) = (second(capacity + number), capacity + 2 * number);
        assert!(resolves(&mut cache, now, on(0, host), packet_of(host, 0)));
        cache.enqueue(now, on(0, host + 1), packet_of(host + 1, 0));
        if number % 10 == 0 {
            let enqueued = cache.enqueue(now, on(1, number), packet_of(7, 1));
            let Enqueued::Solicit { evicted } = enqueued else { panic!("{enqueued:?}") };
            assert!(evicted.is_none_or(|evicted| evicted.interface == 0));
        }
        if number % 10 == 9 {
            assert!(cache.learn(now, on(1, number - 9), HERE, REPLY).changed, "{number}");
        }
    }
    assert!((0..600).step_by(10).all(|host| cache.mac(on(1, host)).is_some()));
    check(&cache);
}

#[test]
fn a_scan_evicts_few_neighbours_of_a_full_cache() {
    let settings = NeighborSettings { capacity: 640, ..NeighborSettings::default() };
    let mut cache = cache(settings);
    for host in 0..640 {
        assert!(resolves(&mut cache, at(u64::from(host) * 4), key(host), packet_of(host, 0)));
    }
    for number in 0..900 {
        cache.enqueue(at(3000 + u64::from(number)), key(1000 + number), packet_of(number, 0));
    }
    let kept = (0..640).filter(|host| cache.mac(key(*host)).is_some()).count();
    assert_eq!((kept, cache.incomplete.len()), (630, 10));
    check(&cache);
}

/// An operation on the cache.
#[derive(Clone, Debug)]
enum Operation {
    Wait(u32),
    Learn(u32, bool, u8),
    Pass(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (0u32..40).prop_map(Operation::Wait),
        (0u32..40, any::<bool>(), 0u8..5).prop_map(|(host, here, kind)| Operation::Learn(host, here, kind)),
        (0u64..40_000).prop_map(Operation::Pass),
    ]
}

fn evidence(kind: u8) -> Evidence {
    match kind {
        0 | 1 => Evidence::Solicited { overrides: kind == 1 },
        2 | 3 => Evidence::Unsolicited { overrides: kind == 3 },
        _ => Evidence::Request,
    }
}

fn check(cache: &NeighborCache) {
    let entries = || cache.entries.values();
    assert_eq!(cache.timers.len(), entries().filter(|entry| entry.state != Reachability::Static).count());
    assert_eq!(
        cache.incomplete.len(),
        entries().filter(|entry| entry.state == Reachability::Incomplete).count()
    );
    assert!(
        cache.timers.len() <= cache.settings.capacity && cache.incomplete.len() <= cache.settings.incomplete
    );
    assert!(entries().all(|entry| entry.queue.len() <= cache.settings.queue));
    assert!(entries().all(|entry| entry.queue.is_empty() || entry.state == Reachability::Incomplete));
}

proptest! {
    #[test]
    fn bounds_hold_after_any_operations(operations in prop::collection::vec(operation(), 1..400)) {
        let settings = NeighborSettings {
            capacity: 10,
            incomplete: 4,
            queue: 3,
            resolutions: RateLimit { rate: 100, burst: 5 },
            ..NeighborSettings::default()
        };
        let (mut cache, mut now) = (cache(settings), at(1));
        cache.set_static(key(0), HERE);
        for operation in operations {
            match operation {
                Operation::Wait(host) if cache.mac(key(host)).is_none() => {
                    cache.enqueue(now, key(host), packet(0));
                }
                Operation::Wait(_) => {}
                Operation::Learn(host, here, kind) => {
                    cache.learn(now, key(host), if here { HERE } else { THERE }, evidence(kind));
                }
                Operation::Pass(millis) => {
                    now += at(millis);
                    while cache.next_timeout(now).is_some() {}
                }
            }
            check(&cache);
            prop_assert_eq!(cache.mac(key(0)), Some(HERE));
            prop_assert!(cache.next_deadline().is_none_or(|next| next > now), "no expired timer is left");
        }
    }
}
