//! Which flows the models draw.

use std::collections::{HashMap, HashSet};

use fullview_bench::traffic::flow::{FlowError, FlowSet};
use fullview_bench::traffic::frame::Headers;
use fullview_bench::traffic::model::{Model, forwardable};
use fullview_table::{Address, NextHop, Prefix, Rib};

use crate::support::{inet, inet6, rib};

fn ends<A: Address>(set: &FlowSet<A>) -> (usize, usize, [String; 4]) {
    let sources: Vec<A> = set.packets().iter().map(|flow| flow.source).collect();
    let destinations: Vec<A> = set.packets().iter().map(|flow| flow.destination).collect();
    let (distinct_sources, distinct_destinations) =
        (sources.iter().collect::<HashSet<_>>().len(), destinations.iter().collect::<HashSet<_>>().len());
    let ends =
        [sources.iter().min(), sources.iter().max(), destinations.iter().min(), destinations.iter().max()];
    (distinct_sources, distinct_destinations, ends.map(|addr| addr.unwrap().to_ip().to_string()))
}

#[test]
fn netbenches_flows_are_those_of_the_reports() {
    let set = Model::Netbenches { flows: 5_000 }.flows(&inet(), 1).unwrap();
    assert_eq!((set.packets().len(), set.distinct()), (5_000, 5_000));
    let addresses = ["198.18.10.1", "198.18.10.20", "198.19.10.1", "198.19.10.250"].map(String::from);
    assert_eq!(ends(&set), (20, 250, addresses));
    assert!(set.packets().iter().all(|flow| (flow.source_port, flow.destination_port) == (2000, 2000)));

    let set = Model::Netbenches { flows: 2_000 }.flows(&inet6(), 1).unwrap();
    let addresses = ["2001:2:0:10::1", "2001:2:0:10::14", "2001:2:0:8010::1", "2001:2:0:8010::64"];
    assert_eq!(ends(&set), (20, 100, addresses.map(String::from)));
}

#[test]
fn netbenches_gives_any_count_exactly() {
    for flows in [1, 7, 23, 200, 999, 100_000] {
        let set = Model::Netbenches { flows }.flows(&inet(), 1).unwrap();
        assert_eq!(set.distinct(), flows);
    }
    let too_many = Model::Netbenches { flows: 20 * 62_975 + 20 }.flows(&inet(), 1);
    assert!(matches!(too_many, Err(FlowError::TooMany { limit: 1_259_500, .. })));
    assert!(Model::Netbenches { flows: 20 * 62_975 }.flows(&inet(), 1).is_ok());
    assert_eq!(Model::<u32>::Netbenches { flows: 0 }.flows(&inet(), 1).unwrap_err(), FlowError::None);
}

#[test]
fn ranges_go_in_the_order_of_pkt_gen() {
    let model = Model::Ranges {
        source: "10.0.0.1:1-10.0.0.2:2".parse().unwrap(),
        destination: "198.19.0.1:9-198.19.0.2".parse().unwrap(),
        most: 100,
    };
    let set = model.flows(&inet(), 1).unwrap();
    let order: Vec<_> = set
        .packets()
        .iter()
        .map(|flow| (flow.destination & 0xff, flow.source & 0xff, flow.source_port))
        .collect();
    let expected = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 2, 2), (2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2)];
    assert_eq!(order, expected);
    assert!(set.packets().iter().enumerate().all(|(number, flow)| flow.id as usize == number));
    assert_eq!(set.next_hops(), [NextHop(2); 8]);
    let Model::Ranges { source, destination, .. } = model else { unreachable!() };
    let first = Model::Ranges { source, destination, most: 3 }.flows(&inet(), 1).unwrap();
    assert_eq!(first.packets(), &set.packets()[..3]);
}

#[test]
fn ranges_too_large_to_keep_are_refused() {
    let model = Model::Ranges {
        source: "[2001:2::1]:0-[2001:2::ffff]:65535".parse().unwrap(),
        destination: "[2001:2:0:8000::1]".parse().unwrap(),
        most: usize::MAX,
    };
    let error = model.flows(&inet6(), 1).unwrap_err();
    assert!(matches!(error, FlowError::TooMany { asked: 4_294_901_760, limit: 1_048_576, .. }), "{error}");
}

/// Every address drawn may be forwarded, has a route, and lies in its family's test table.
fn check_drawn<A: Headers>(rib: &Rib<A>) {
    let zipf = Model::Zipf { packets: 5_000, exponent: 1.0 };
    for model in [Model::Prefixes { packets: 5_000 }, zipf] {
        let set = model.flows(rib, 7).unwrap();
        assert_eq!(set.packets().len(), 5_000);
        assert!(set.packets().iter().all(|flow| forwardable(flow.destination)));
        assert!(set.next_hops().iter().all(|hop| hop.is_some()));
        for flow in set.packets() {
            let expected = rib.longest_match(flow.destination).unwrap().next_hop;
            assert_eq!(set.next_hops()[flow.id as usize], expected);
            assert_eq!(set.flow(flow.id), set.packets().iter().find(|first| first.id == flow.id));
        }
        assert_eq!(set.packets(), model.flows(rib, 7).unwrap().packets(), "the same seed, the same packets");
        assert_ne!(set.packets(), model.flows(rib, 8).unwrap().packets(), "another seed, other packets");
    }
}

#[test]
fn drawn_destinations_have_routes_and_may_be_forwarded() {
    check_drawn(&inet());
    check_drawn(&inet6());
}

/// 64 prefixes of different sizes: counts by prefix.
fn counts(model: Model<u32>) -> Vec<u32> {
    let prefixes: Vec<Prefix<u32>> =
        (0..64u32).map(|n| Prefix::containing((20 + n) << 24, 8 + (n % 17) as u8)).collect();
    let mut rib = Rib::default();
    for prefix in &prefixes {
        rib.announce(*prefix, NextHop(1));
    }
    let set = model.flows(&rib, 3).unwrap();
    let mut counts: HashMap<Prefix<u32>, u32> = HashMap::new();
    for flow in set.packets() {
        *counts.entry(rib.longest_match(flow.destination).unwrap().prefix).or_default() += 1;
    }
    prefixes.iter().map(|prefix| counts.get(prefix).copied().unwrap_or(0)).collect()
}

#[test]
fn prefixes_are_drawn_alike_whatever_their_size() {
    // 99.9 % quantile of chi-square with 63 degrees of freedom: 103.44.
    let expected = 64_000.0 / 64.0;
    let counts = counts(Model::Prefixes { packets: 64_000 });
    let statistic: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    assert!(statistic < 103.44, "{statistic}");
}

#[test]
fn zipf_gives_prefixes_their_rank_at_random() {
    let in_table_order = counts(Model::Zipf { packets: 64_000, exponent: 1.0 });
    let mut by_rank = in_table_order.clone();
    by_rank.sort_unstable_by(|a, b| b.cmp(a));
    assert_ne!(in_table_order, by_rank);
    // The harmonic number H64 is 4.7439: shares of the first ranks within 5 %.
    for (rank, count) in by_rank.iter().take(4).enumerate() {
        let expected = 64_000.0 / (rank as f64 + 1.0) / 4.7439;
        assert!(
            (f64::from(*count) / expected - 1.0).abs() < 0.05,
            "rank {rank}: {count}, {expected} expected"
        );
    }
}

#[test]
fn addresses_cover_the_whole_space_but_martians() {
    let set = Model::Addresses { packets: 100_000 }.flows(&inet(), 9).unwrap();
    let mut by_octet = [0u32; 256];
    set.packets().iter().for_each(|flow| by_octet[(flow.destination >> 24) as usize] += 1);
    assert!((1..=223).filter(|octet| *octet != 127).all(|octet| by_octet[octet] > 300), "{by_octet:?}");
    assert_eq!(by_octet[0] + by_octet[127] + by_octet[224..].iter().sum::<u32>(), 0);
    assert!(set.next_hops().contains(&NextHop::NONE), "no route is part of this model");
}

#[test]
fn martians_are_not_forwardable() {
    for text in ["0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        assert!(!forwardable(u32::from_ip(text.parse().unwrap())), "{text}");
    }
    for text in ["::", "::1", "fe80::1", "febf::1", "ff02::1", "::ffff:10.0.0.1"] {
        assert!(!forwardable(u128::from_ip(text.parse().unwrap())), "{text}");
    }
    for text in ["1.0.0.1", "10.0.0.1", "198.18.0.1", "223.255.255.255"] {
        assert!(forwardable(u32::from_ip(text.parse().unwrap())), "{text}");
    }
    assert!(forwardable(u128::from_ip("2001:db8::1".parse().unwrap())));
}

#[test]
fn tables_without_destinations_are_an_error_not_a_hang() {
    for routes in [&[][..], &[("10.0.0.0/8", 0)], &[("224.0.0.0/4", 1), ("127.0.0.0/8", 1)]] {
        let table: Rib<u32> = rib(routes);
        let error = Model::Prefixes { packets: 1 }.flows(&table, 1).unwrap_err();
        assert!(matches!(error, FlowError::NothingForwardable { .. }), "{error}");
    }
    let error = Model::Zipf { packets: 1, exponent: 0.0 }.flows(&inet(), 1).unwrap_err();
    assert_eq!(error, FlowError::Exponent(0.0));
}

#[test]
fn one_is_one() {
    let set = Model::One.flows(&inet(), 1).unwrap();
    assert_eq!((set.packets().len(), set.distinct(), set.next_hops()), (256, 1, &[NextHop(2)][..]));
}
