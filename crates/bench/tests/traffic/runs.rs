//! Whole runs: nothing is lost, nothing is made up, and everything comes out right.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fullview_bench::placement::{Placement, PlacementError, Role};
use fullview_bench::traffic::flow::FlowSet;
use fullview_bench::traffic::frame::{FrameSize, Headers};
use fullview_bench::traffic::load::{
    LoadConfig, LoadError, LoadResult, Router, Unrouted, Window, frames, passage,
};
use fullview_bench::traffic::model::Model;
use fullview_bench::traffic::one_core::{Bed, Flight, Lap, verify};
use fullview_bench::traffic::two_cores::two_cores;
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::{Arena, Burst};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::verdict::Reason;
use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
use fullview_table::fib::registry;
use fullview_table::{NextHop, Rib};

use crate::support::{MACS, Plain, departures, inet, inet6};

static GO: AtomicBool = AtomicBool::new(false);

fn window() -> Window<'static> {
    // Whatever is on its way comes, on a busy machine too.
    let drain = Duration::from_secs(60);
    Window { drain, ..Window::new(Duration::from_millis(10), Duration::from_millis(20), 3, &GO) }
}

/// Three laps of a router alone on a bed, and what they counted together.
fn one_core<A: Headers, R: Router>(
    config: &LoadConfig,
    flows: &FlowSet<A>,
    router: &mut R,
) -> Result<(LoadResult, Vec<Lap>), LoadError> {
    let frames = frames::<A>(config)?;
    let mut arena = Arena::new(config.packets);
    let mut bed = Bed::new(&mut arena, &frames, config.ports());
    let mut flight = Flight::new(config, flows, &frames, passage::<R>(config))?;
    let laps = (0..3).map(|_| bed.run(&mut flight, router, Duration::from_millis(7))).collect();
    Ok((flight.result(), laps))
}

fn config(size: FrameSize) -> LoadConfig {
    LoadConfig { check_one_in: NonZeroU32::MIN, ..LoadConfig::new(size, MACS, departures()) }
}

/// Sent is received or dropped, and all that came out is right, in the order in which it was sent.
fn check_conserved(result: &LoadResult) {
    check_conserved_by_port(result);
    assert_eq!(result.received.order.reordered, 0);
}

/// The same of a path with several ports out, each of which is sent by itself: order is kept within each flow.
fn check_conserved_by_port(result: &LoadResult) {
    assert!(result.sent > 0);
    assert_eq!(result.sent, result.received.packets + result.dropped);
    assert_eq!(result.lost(), 0);
    assert_eq!((result.received.wrong, result.received.checked), (0, result.received.packets));
    let order = result.received.order;
    assert_eq!((order.duplicates, order.reordered_in_flow, order.stale), (0, 0, 0));
    assert!(!result.interrupted);
}

fn check_both_shapes<A: Headers>(rib: &Rib<A>, size: FrameSize) {
    let flows = Model::Netbenches { flows: 200 }.flows(rib, 1).unwrap();
    let config = config(size);
    let (one, laps) = one_core(&config, &flows, &mut Plain::new(rib)).unwrap();
    check_conserved(&one);
    assert_eq!(laps.iter().map(|lap| lap.sent).sum::<u64>(), one.sent);
    assert_eq!(laps.iter().map(|lap| lap.received).sum::<u64>(), one.received.packets);
    assert!(laps.iter().all(|lap| lap.offered == lap.sent && lap.time >= Duration::from_millis(7)));
    let (control, _) = one_core(&config, &flows, &mut Unrouted).unwrap();
    assert_eq!((control.received.wrong, control.received.order), (0, Default::default()));
    assert!(control.received.packets > 0);

    let two = two_cores(&config, &flows, &mut Plain::new(rib), &window()).unwrap();
    check_conserved(&two);
    assert_eq!((two.rates.len(), two.received.distinct_flows, two.sent_bytes), (3, 200, two.received.bytes));
}

#[test]
fn packets_are_conserved() {
    check_both_shapes(&inet(), FrameSize::Smallest);
    check_both_shapes(&inet6(), FrameSize::Imix);
}

/// The forwarding path itself, between fourteen ports, with the oracle as its FIB.
fn forwarder() -> Forwarder {
    let fib = registry::find("linear").unwrap().compile(&inet()).unwrap().fib();
    let fib6 = registry::find("linear").unwrap().compile(&inet6()).unwrap().fib();
    let mut interfaces: Vec<_> = (0..14).map(|port| Interface::new(port, MACS.destination)).collect();
    let mut adjacencies = Adjacencies::new();
    for (hop, departure) in (1..).zip(&departures()[1..]) {
        let interface = &mut interfaces[usize::from(departure.port)];
        (interface.mac, interface.mtu) = (departure.source, 2000);
        let neighbor = Adjacency::Neighbor { interface: departure.port, mac: departure.destination };
        adjacencies.set(NextHop(hop), neighbor);
    }
    let parts = ViewParts::new(interfaces, adjacencies, TableReaders::fixed(fib, fib6));
    Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()))
}

#[test]
fn the_forwarding_path_forwards_everything_rightly() {
    for size in [FrameSize::Smallest, FrameSize::Imix] {
        let flows = Model::Prefixes { packets: 5_000 }.flows(&inet(), 2).unwrap();
        let result = verify(&config(size), &flows, &mut forwarder()).unwrap();
        check_conserved_by_port(&result);
        assert_eq!((result.sent, result.dropped), (5_000, 0));
        let flows = Model::Prefixes { packets: 5_000 }.flows(&inet6(), 2).unwrap();
        check_conserved_by_port(&one_core(&config(size), &flows, &mut forwarder()).unwrap().0);
        check_conserved_by_port(&two_cores(&config(size), &flows, &mut forwarder(), &window()).unwrap());
    }
}

#[test]
fn the_forwarding_path_drops_only_what_has_no_route() {
    let flows = Model::Addresses { packets: 5_000 }.flows(&inet(), 1).unwrap();
    let mut forwarder = forwarder();
    let result = verify(&config(FrameSize::Smallest), &flows, &mut forwarder).unwrap();
    check_conserved(&result);
    assert!(result.dropped > 0 && result.received.packets > 0);
    let without_route = forwarder.counters().drop_reasons().find(|(reason, _)| *reason == Reason::NoRoute);
    assert_eq!(without_route, Some((Reason::NoRoute, result.dropped)));
}

#[test]
fn drops_are_counted_as_drops() {
    let rib = inet();
    let flows = Model::Addresses { packets: 5_000 }.flows(&rib, 1).unwrap();
    let routed =
        flows.packets().iter().filter(|flow| flows.next_hops()[flow.id as usize].is_some()).count() as u64;
    let result = verify(&config(FrameSize::Smallest), &flows, &mut Plain::new(&rib)).unwrap();
    check_conserved(&result);
    assert_eq!((result.sent, result.received.packets, result.dropped), (5_000, routed, 5_000 - routed));
    let result = two_cores(&config(FrameSize::Smallest), &flows, &mut Plain::new(&rib), &window()).unwrap();
    check_conserved(&result);
    assert!(result.dropped > 0);
}

/// Loses one packet in a hundred without reporting it as dropped.
struct Leaky<'r>(Plain<'r, u32>, u64);

impl Router for Leaky<'_> {
    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
        self.1 += burst.len() as u64;
        let lose = self.1 / 100 - (self.1 - burst.len() as u64) / 100;
        let mut kept = Burst::new();
        (0..lose).filter_map(|_| burst.pop()).for_each(|packet| assert!(kept.push(packet).is_ok()));
        self.0.route(burst, forwarded, dropped);
        std::mem::swap(burst, &mut kept);
    }
}

#[test]
fn losses_are_reported() {
    let rib = inet();
    let flows = Model::Netbenches { flows: 5_000 }.flows(&rib, 1).unwrap();
    let mut router = Leaky(Plain::new(&rib), 0);
    let result = verify(&config(FrameSize::Smallest), &flows, &mut router).unwrap();
    assert_eq!((result.sent, result.lost(), result.received.wrong), (5_000, 50, 0));
}

#[test]
fn a_router_that_does_nothing_is_found_out() {
    struct Lazy;
    impl Router for Lazy {
        fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], _: &mut Burst<'a>) {
            std::mem::swap(burst, &mut forwarded[0]);
        }
    }
    let rib = inet();
    let flows = Model::Netbenches { flows: 100 }.flows(&rib, 1).unwrap();
    let result = verify(&config(FrameSize::Smallest), &flows, &mut Lazy).unwrap();
    assert_eq!((result.received.packets, result.received.wrong), (100, 100));
    let direct = verify(&config(FrameSize::Smallest), &flows, &mut Unrouted).unwrap();
    assert_eq!((direct.received.packets, direct.received.wrong), (100, 0));
}

#[test]
fn a_paced_run_sends_what_was_due() {
    let rib = inet();
    let flows = Model::Netbenches { flows: 200 }.flows(&rib, 1).unwrap();
    let config = LoadConfig { pps: Some(20_000.0), ..config(FrameSize::Smallest) };
    for result in [
        one_core(&config, &flows, &mut Plain::new(&rib)).unwrap().0,
        two_cores(&config, &flows, &mut Plain::new(&rib), &window()).unwrap(),
    ] {
        check_conserved(&result);
        assert!(result.sent <= result.offered.unwrap(), "never more than was due");
        assert!(result.max_lag.is_some());
    }
}

/// What was due and could not be sent is offered, but neither sent nor lost.
#[test]
fn a_router_that_is_too_slow_for_its_load_shows_it_as_packets_not_received() {
    struct Slow<'r>(Plain<'r, u32>);
    impl Router for Slow<'_> {
        fn route<'a>(&mut self, burst: &mut Burst<'a>, out: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(1) {}
            self.0.route(burst, out, dropped);
        }
    }
    let rib = inet();
    let flows = Model::Netbenches { flows: 200 }.flows(&rib, 1).unwrap();
    let config = LoadConfig { pps: Some(1e6), burst: 1, ..config(FrameSize::Smallest) };
    let (result, laps) = one_core(&config, &flows, &mut Slow(Plain::new(&rib))).unwrap();
    check_conserved(&result);
    // All laps together: where other programs have the core, one may end right after it began.
    let (offered, received) =
        laps.iter().fold((0, 0), |sum, lap| (sum.0 + lap.offered, sum.1 + lap.received));
    assert!(received > 0 && received * 100 < offered, "{received} of {offered}");
}

/// Two routers take turns on one bed, and each has its own packets and counts.
#[test]
fn routers_share_a_bed_and_nothing_else() {
    let (rib, config) = (inet(), config(FrameSize::Smallest));
    let flows = Model::Netbenches { flows: 200 }.flows(&rib, 1).unwrap();
    let (frames, mut arena) = (frames::<u32>(&config).unwrap(), Arena::new(config.packets));
    let mut bed = Bed::new(&mut arena, &frames, config.ports());
    let flight = || Flight::new(&config, &flows, &frames, passage::<Forwarder>(&config)).unwrap();
    let (mut first, mut second, turn) = (flight(), flight(), Duration::from_micros(200));
    let (mut one, mut other) = (forwarder(), forwarder());
    let laps: Vec<[Lap; 2]> = (0..20)
        .map(|_| [bed.run(&mut first, &mut one, turn), bed.run(&mut second, &mut other, turn)])
        .collect();
    for (at, result) in [first.result(), second.result()].iter().enumerate() {
        check_conserved_by_port(result);
        assert_eq!(laps.iter().map(|laps| laps[at].sent).sum::<u64>(), result.sent);
    }
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let stop = AtomicBool::new(true);
    let rib = inet();
    let flows = Model::One.flows(&rib, 1).unwrap();
    let endless = Window::new(Duration::from_secs(3600), Duration::from_secs(3600), 1, &stop);
    let config = config(FrameSize::Smallest);
    let result = two_cores(&config, &flows, &mut Plain::new(&rib), &endless).unwrap();
    assert!(result.interrupted && result.rates.is_empty());
    assert_eq!(result.lost(), 0);
}

#[test]
fn a_router_that_panics_ends_the_run_with_an_error() {
    struct Broken;
    impl Router for Broken {
        fn route<'a>(&mut self, _: &mut Burst<'a>, _: &mut [Burst<'a>], _: &mut Burst<'a>) {
            panic!("as intended by the test");
        }
    }
    let flows = Model::One.flows(&inet(), 1).unwrap();
    let endless = Window::new(Duration::ZERO, Duration::from_secs(3600), 1, &GO);
    let result = two_cores(&config(FrameSize::Smallest), &flows, &mut Broken, &endless);
    assert!(matches!(result, Err(LoadError::Panicked)));
}

#[test]
fn runs_go_where_they_are_placed() {
    let flows = Model::One.flows(&inet(), 1).unwrap();
    let core = Placement::one_core().unwrap().core(Role::Ends);
    let shared = Placement::TwoCores { ends: core, router: core };
    let nowhere = Placement::TwoCores { ends: core, router: 1000 };
    let placed = |placement| {
        let config = LoadConfig { placement: Some(placement), ..config(FrameSize::Smallest) };
        two_cores(&config, &flows, &mut forwarder(), &window())
    };
    check_conserved(&placed(shared).unwrap());
    assert!(matches!(placed(nowhere), Err(LoadError::Placement(PlacementError::Refused { core: 1000 }))));
}

#[test]
fn a_window_without_length_is_refused() {
    let flows = Model::One.flows(&inet(), 1).unwrap();
    let empty = Window { slice: Duration::ZERO, ..window() };
    let result = two_cores(&config(FrameSize::Smallest), &flows, &mut Unrouted, &empty);
    assert!(matches!(result, Err(LoadError::Window)));
}

#[test]
fn impossible_configurations_are_refused() {
    let flows = Model::One.flows(&inet(), 1).unwrap();
    let good = config(FrameSize::Smallest);
    for (bad, part) in [
        (LoadConfig { burst: 0, ..good.clone() }, "0 packets a burst"),
        (LoadConfig { burst: 257, ..good.clone() }, "257 packets a burst"),
        (LoadConfig { packets: 63, ..good.clone() }, "63 packets in flight"),
        (LoadConfig { pps: Some(0.0), ..good.clone() }, "rate 0"),
        (LoadConfig { size: FrameSize::Bytes(59), ..good.clone() }, "59 bytes"),
    ] {
        let error = one_core(&bad, &flows, &mut Unrouted).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
