//! What other stations make the router send and store stays within its limits, whatever they send.

use fullview_plane::wire::ipv4::Ipv4Packet;
use std::time::Duration;

use fullview_plane::wire::arp::ArpOperation;
use fullview_plane::wire::ethernet::HEADER;
use fullview_plane::wire::icmpv6::Icmpv6Kind;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};
use fullview_plane::wire::{ipv4, udp};
use fullview_router::host::RateLimit;
use fullview_router::host::config::{HostConfig, HostSettings, NeighborSettings};
use proptest::prelude::*;

use crate::support::*;

fn limited(rate: u32, burst: u32) -> HostConfig {
    let errors = RateLimit { rate, burst };
    let errors_per_interface = RateLimit { rate: rate / 2 + 1, burst: burst / 2 + 1 };
    let neighbors = NeighborSettings { capacity: 16, incomplete: 8, ..NeighborSettings::default() };
    HostConfig {
        settings: HostSettings { errors, errors_per_interface, neighbors, ..HostSettings::default() },
        ..config()
    }
}

#[test]
fn errors_are_limited_per_interface_and_in_total() {
    let mut router = TestRouter::new(&limited(10, 10));
    router.send(0, &[arp(ArpOperation::Request, "10.0.0.9", "10.0.0.1")]);
    router.send(1, &[arp(ArpOperation::Request, "10.0.1.9", "10.0.1.1")]);
    let expired = |source: &str| vec![inet(source, "198.18.0.1", 1); 50];
    assert_eq!(router.send(0, &expired("10.0.0.9")).len(), 6, "the burst of one interface");
    assert_eq!(router.send(1, &expired("10.0.1.9")).len(), 4, "the rest of the shared burst");
    router.now += Duration::from_secs(1);
    assert_eq!(router.send(0, &expired("10.0.0.9")).len(), 6);
    let counters = router.stack.host().counters();
    assert_eq!((counters.errors, counters.errors_limited), (16, 134));
    assert_eq!(
        router.send(0, &vec![echo("10.0.0.9", "10.0.0.1"); 50]).len(),
        50,
        "echo replies are not limited"
    );
}

#[test]
fn a_scan_of_a_network_causes_a_bounded_number_of_requests() {
    let mut router = TestRouter::new(&config());
    let mut requests = 0;
    for host in 0..20_000u32 {
        let destination = format!("2001:db8:1::{host:x}");
        requests += router.send(0, &[inet6("2001:db8::9", &destination, 9)]).len();
        router.now += Duration::from_micros(100);
    }
    let RateLimit { rate, burst } = NeighborSettings::default().resolutions;
    let (rate, burst) = (rate as usize, burst as usize);
    // Each address is solicited up to three times, unless it is evicted before.
    assert!(
        requests <= 3 * (burst + 2 * rate) + 20,
        "{requests} requests after 20,000 packets in two seconds"
    );
    assert!(router.stack.host().counters().queue_full > 15_000);
}

/// Frames that the property test mutates.
fn templates() -> Vec<Vec<u8>> {
    let target = v6("2001:db8::1").to_bits();
    let solicitation = Builder::neighbor(Icmpv6Kind::NeighborSolicitation, 0, target);
    let solicitation = solicitation.link_address(LinkAddress::Source, STATION).build();
    let advertisement = Builder::neighbor(Icmpv6Kind::NeighborAdvertisement, ndp::SOLICITED, target + 8);
    let advertisement = advertisement.link_address(LinkAddress::Target, STATION).build();
    let mut long = inet_with("10.0.0.9", "10.0.1.9", 9, 17, &vec![5; udp::HEADER + 1700]);
    long[HEADER + 6] = 0;
    vec![
        arp(ArpOperation::Request, "10.0.0.9", "10.0.0.1"),
        arp(ArpOperation::Reply, "10.0.0.7", "10.0.0.1"),
        echo("10.0.0.9", "10.0.0.1"),
        inet("10.0.0.9", "10.0.1.9", 9),
        inet("10.0.0.9", "198.18.0.1", 1),
        inet("10.0.0.9", "192.0.2.1", 9),
        long,
        inet6("2001:db8::9", "2001:db8:1::9", 9),
        inet6("2001:db8::9", "2001:db8::1", 1),
        inet6_with(
            "2001:db8::9",
            "2001:db8::1",
            9,
            0,
            &[60, 0, 0x9e, 4, 0, 0, 0, 0, 59, 0, 1, 4, 0, 0, 0, 0],
        ),
        inet6("fe80::9", "fe80::1", 9),
        inet6("2001:db8::9", "2001:2::1", 1),
        discovery("2001:db8::9", "ff02::1:ff00:1", solicitation),
        discovery("2001:db8::9", "2001:db8::1", advertisement),
        discovery("fe80::9", "ff02::2", vec![133, 0, 0, 0, 0, 0, 0, 0]),
    ]
}

/// A template with some bytes changed and some cut off, with or without a tag, with or without a corrected IPv4
/// checksum.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let cut = prop_oneof![4 => Just(0usize), 1 => 0usize..60];
    (prop::sample::select(templates()), changes, cut, any::<bool>(), any::<bool>()).prop_map(
        |(mut frame, changes, cut, summed, tag)| {
            for (at, value) in changes {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            frame.truncate(frame.len() - cut.min(frame.len() - HEADER));
            let header = frame.get(HEADER).map_or(0, |byte| usize::from(byte & 0x0f) * 4);
            if summed && header >= ipv4::HEADER && frame.len() >= HEADER + header {
                Ipv4Packet::new_unchecked(&mut frame[HEADER..]).fill_checksum();
            }
            if tag { tagged(frame) } else { frame }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No sequence of frames and times makes the router panic or exceed its limits.
    #[test]
    fn no_frames_make_the_router_exceed_its_limits(
        steps in prop::collection::vec((0u16..3, frame(), 0u64..3_000), 1..200),
    ) {
        let (rate, burst) = (20, 10);
        let mut router = TestRouter::new(&limited(rate, burst));
        let began = router.now;
        for (port, frame, millis) in steps {
            router.now += Duration::from_millis(millis);
            for (port, sent) in router.send(port, &[frame]) {
                prop_assert!(port < 2 && sent.len() >= HEADER);
            }
            let most = u64::from(burst) + ((router.now - began).as_secs_f64() * f64::from(rate)) as u64 + 1;
            prop_assert!(router.stack.host().counters().errors <= most);
        }
        prop_assert_eq!(router.stack.frames_dropped(), 0);
        // In the end all resolutions are given up, and no expired timer is left.
        router.pass(Duration::from_secs(100));
        (0..10).for_each(|_| { router.pass(Duration::from_secs(10)); });
        let now = router.now;
        prop_assert!(router.stack.next_deadline().is_none_or(|next| next > now));
    }
}
