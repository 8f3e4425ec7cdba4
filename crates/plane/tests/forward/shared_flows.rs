//! Packets of known flows that a program forwards fare as if the worker had judged each of them: the same frames, states
//! and counters, whatever changes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullview_filter::state::WorkerLimits;
use fullview_plane::burst::BURST;
use fullview_plane::counters::Counters;
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::memory;
use fullview_plane::view::{View, Views};
use fullview_plane::worker::{DropAll, Wait, Worker};
use proptest::prelude::*;

use crate::flow_program::Program;
use crate::frames::*;
use crate::known_flows::{
    Compared, Kind, NOW, Routed, SLOPPY, Segment, Sent, Step, burst_of_both_families, connect, exchange,
    frame, of_connection, one, rule_sets, segment_of, step, udp, udp_between, view,
};
use crate::router::DEVICES;

/// A filter that judges all packets, and one whose known flows a program forwards.
struct Pair {
    truth: Compared,
    fast: Compared,
    program: Program,
    links: Arc<NotedLinks>,
}

impl Pair {
    fn new(views: &Views, language: usize, limits: WorkerLimits, (known, flows): (usize, u16)) -> Pair {
        let rules = &rule_sets(language)[0];
        let mut truth = Compared::new(views, rules, limits, 0);
        let mut fast = Compared::new(views, rules, limits, known);
        let program = Program::new(flows, fast.forwarder.filter_mut().into_iter());
        let links = Arc::<NotedLinks>::default();
        [&mut truth, &mut fast].into_iter().for_each(|compared| compared.watch(&links));
        Pair { truth, fast, program, links }
    }

    /// A pair that has begun, with room for so many known flows in the worker and in the program, and its routes.
    fn begun(flows: (usize, u16)) -> (Routed, Pair) {
        NOW.set(1_000_000);
        let routed = Routed::new();
        let mut pair = Pair::new(&Views::new(view(&routed, 0)), 0, WorkerLimits::default(), flows);
        pair.round();
        (routed, pair)
    }

    /// A worker begins a round at least this often.
    fn round(&mut self) {
        self.program.memory.report_control(NOW.get() * 1_000_000);
        for _ in 0..2 {
            self.truth.forwarder.change_rules();
            self.fast.forwarder.change_rules();
        }
        self.program.grace.serve(|| true);
    }

    fn send(&mut self, sent: &Sent) {
        let (port, frame) = frame(sent);
        let expected = run(&mut self.truth.forwarder, &[(port, frame.clone())]);
        let fate = match self.program.forward(port, &frame, NOW.get()) {
            Some((port, frame)) => vec![Fate::Sent { port, frame }],
            None => run(&mut self.fast.forwarder, &[(port, frame)]),
        };
        assert_eq!(expected, fate, "{sent:?}");
        self.round();
    }

    /// What both have counted by interface.
    fn counters(&mut self) -> [Counters; 2] {
        self.fast.forwarder.take_back_flows();
        [&self.truth, &self.fast].map(|one| one.forwarder.counters().clone())
    }
}

/// What the router's thread does about another view.
fn publish(views: &Views, view: View, program: &Program) {
    let ends_flows = !view.differs_by_adjacencies_only(&views.current());
    views.publish(view);
    if ends_flows {
        program.memory.end_generation();
    }
}

/// Runs the steps with and without a program, and compares after each step. Returns how many packets it forwarded.
fn compare(language: usize, states: u32, flows: u16, steps: &[Step]) -> u64 {
    compare_with_room(language, states, (1000, flows), steps)
}

/// As [`compare`], with room for so many known flows in the worker, and for as many of them in the program.
fn compare_with_room(language: usize, states: u32, flows: (usize, u16), steps: &[Step]) -> u64 {
    NOW.set(1_000_000);
    let (mut routed, sets) = (Routed::new(), rule_sets(language));
    let views = Views::new(view(&routed, 0));
    let limits = WorkerLimits { states, ..WorkerLimits::default() };
    let mut pair = Pair::new(&views, language, limits, flows);
    pair.round();
    for step in steps {
        match step {
            Step::Burst(packets) => packets.iter().for_each(|sent| pair.send(sent)),
            Step::Pause(milliseconds) => NOW.set(NOW.get() + milliseconds),
            Step::Idle => {}
            Step::Rules(number) => {
                pair.truth.change_rules(&sets[number % sets.len()]);
                pair.fast.change_rules(&sets[number % sets.len()]);
            }
            Step::Route(next_hop) => routed.set("198.19.0.0/16", *next_hop),
            Step::View(number) => publish(&views, view(&routed, *number), &pair.program),
            Step::Link(port, has_failed) => {
                pair.links.note(DEVICES[usize::from(*port)], *has_failed);
                pair.program.memory.end_generation();
            }
        }
        pair.round();
        assert_eq!(pair.truth.remembered(), pair.fast.remembered(), "after {step:?}");
    }
    let [truth, fast] = pair.counters();
    assert_eq!(truth, fast);
    pair.program.packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn shared_flows_change_no_verdict_no_state_and_no_counter(
        language in 0_usize..2,
        states in prop_oneof![Just(6_u32), Just(12), Just(200)],
        known in prop_oneof![Just(16_usize), Just(1000)],
        flows in prop_oneof![Just(1_u16), Just(4), Just(1000)],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        compare_with_room(language, states, (known, flows), &steps);
    }
}

/// Packets of one connection, and what else may happen to it.
fn connection_step() -> impl Strategy<Value = Step> {
    let flags = prop_oneof![40 => Just(0x10_u8), 16 => Just(0x18), 2 => Just(0x50), 2 => Just(0x30), 1 => Just(0x11), 2 => any::<u8>()];
    let near = || prop_oneof![4 => 0_u16..80, 4 => 0_u16..600, 1 => any::<u16>()];
    let window = prop_oneof![3 => Just(256_u16), 2 => 0_u16..1000, 1 => any::<u16>()];
    let len = prop_oneof![2 => Just(0_u8), 3 => 0_u8..40, 1 => any::<u8>()];
    let segment = (any::<bool>(), flags, (near(), near()), window, len).prop_map(
        |(back, flags, (seq, ack), window, len)| (back, Kind::Tcp(Segment { flags, seq, ack, window, len })),
    );
    let error = (any::<bool>(), near().prop_map(|seq| Kind::Error { seq }));
    let packet = prop_oneof![12 => segment, 1 => error].prop_map(|(back, kind)| of_connection(back, kind));
    prop_oneof![
        // After each step the counters are compared, which asks for windows too.
        20 => prop::collection::vec(packet, 1..12).prop_map(Step::Burst),
        4 => (1_u64..300).prop_map(Step::Pause),
        1 => prop_oneof![Just(Some(2)), Just(Some(3)), Just(None)].prop_map(Step::Route),
        1 => (0_u8..5).prop_map(Step::View),
        1 => prop_oneof![Just(0_usize), Just(1), Just(2), Just(3), Just(5), Just(13)].prop_map(Step::Rules),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_shared_connection_has_the_windows_of_its_states(
        flows in prop_oneof![Just(1_u16), Just(2), Just(1000)],
        steps in prop::collection::vec(connection_step(), 1..40),
    ) {
        compare(0, 200, flows, &[connect(), exchange(3), steps].concat());
    }
}

#[test]
fn a_program_forwards_from_the_third_packet_on() {
    for language in [0, 1] {
        assert_eq!(compare(language, 100, 100, &vec![burst_of_both_families(false); 10]), 16);
        assert_eq!(
            compare(language, 100, 1, &vec![burst_of_both_families(false); 10]),
            8,
            "there is room for one"
        );
    }
}

/// The numbers are those of `rule_sets`.
#[test]
fn a_program_forwards_established_connections() {
    for (language, set, forwarded) in
        [(0, 0, 18), (0, 12, 18), (1, 0, 18), (0, 8, 19), (1, 6, 19), (0, 14, 0)]
    {
        let steps = [vec![Step::Rules(set)], connect(), exchange(10)].concat();
        assert_eq!(compare(language, 100, 100, &steps), forwarded, "{language} {set}");
    }
}

#[test]
fn segments_that_may_end_a_connection_meet_its_states() {
    let begun = [vec![Step::Rules(SLOPPY.1)], connect(), exchange(4)].concat();
    let forwarded = |steps: &[Step]| compare(SLOPPY.0, 100, 100, &[&begun[..], steps].concat()) - 6;
    let one = |flags| one(segment_of(false, flags, 51, 21, 10));
    let plain = 0x10;
    for flags in [0x11, 0x04, 0x02, 0x12, 0x30, 0x50, 0] {
        assert_eq!(forwarded(&[one(flags)]), 0, "{flags:#x}");
    }
    assert_eq!(forwarded(&[one(plain), one(plain | 0x08)]), 2);
    assert_eq!(forwarded(&[one(0x11), one(plain), one(plain)]), 1, "after a FIN the flow is learned again");
}

/// The number of packets that a program forwards of ten, with a change after five.
fn around(change: Step) -> u64 {
    let burst = || Step::Burst(vec![udp(false, false)]);
    compare(0, 100, 100, &[vec![burst(); 5], vec![change], vec![burst(); 5]].concat())
}

/// One of both states has seen a segment that the other one has not, so that the program cannot compare for both.
#[test]
fn a_connection_whose_states_differ_is_not_forwarded() {
    let segment = |back, seq, ack, len| one(segment_of(back, 0x10, seq, ack, len));
    let without_route =
        [connect(), exchange(3), vec![Step::Route(None), segment(false, 41, 131, 0)]].concat();
    let beyond = [without_route, vec![segment(true, 264, 41, 14), segment(true, 21, 41, 10)]].concat();
    assert_eq!(compare(0, 200, 100, &beyond), 4);
}

#[test]
fn what_a_flow_depends_on_ends_its_entry() {
    assert_eq!(around(Step::Idle), 8);
    assert_eq!(around(Step::View(0)), 8, "the same adjacency");
    assert_eq!(around(Step::View(1)), 3, "no neighbour");
    assert_eq!(around(Step::View(2)), 7, "one packet is judged again");
    assert_eq!(around(Step::View(3)), 7, "sources are checked");
    assert_eq!(around(Step::Rules(5)), 7);
    assert_eq!(around(Step::Rules(7)), 7, "the states stay, though the rules block");
    assert_eq!(around(Step::Route(None)), 3);
    assert_eq!(around(Step::Route(Some(3))), 7, "another way");
    assert_eq!(around(Step::Route(Some(2))), 8, "the same way");
    assert_eq!(around(Step::Link(1, true)), 3);
    assert_eq!(around(Step::Link(2, true)), 7, "another link");
    assert_eq!(around(Step::Pause(900)), 8);
    assert_eq!(around(Step::Pause(2_000)), 7, "the worker was silent");
    assert_eq!(around(Step::Pause(100_000)), 6, "the state is another one");
}

/// The table that has no route for it before a rule leads to another one gets one.
#[test]
fn a_route_of_another_table_that_rules_prefer_ends_an_entry() {
    let burst = || Step::Burst(vec![udp(false, false)]);
    let steps = |changes: &[Step]| [changes, &vec![burst(); 5]].concat();
    let by_second = steps(&[Step::View(4), Step::Route(None)]);
    assert_eq!(compare(0, 100, 100, &by_second), 3);
    let by_first_again = steps(&[Step::Route(Some(2))]);
    assert_eq!(compare(0, 100, 100, &[by_second, by_first_again].concat()), 3 + 4);
}

#[test]
fn a_half_closed_connection_is_forwarded() {
    let (plain, fin) = (0x10, 0x11);
    let begun = [connect(), exchange(3)].concat();
    // Before it is acknowledged, any plain segment of the other end may acknowledge the FIN.
    let before = (0..3).map(|_| one(segment_of(true, plain, 21, 41, 0)));
    let closed = [segment_of(false, fin, 41, 21, 0)].map(one).into_iter().chain(before);
    let closed = closed.chain([one(segment_of(true, plain, 21, 42, 0))]).collect::<Vec<_>>();
    let data = (0..10).flat_map(|number| {
        let seq = 21 + 20 * number;
        [segment_of(true, plain, seq, 42, 20), segment_of(false, plain, 42, seq + 20, 0)].map(one)
    });
    let half_closed = [&begun[..], &closed, &data.collect::<Vec<_>>()].concat();
    assert_eq!(compare(0, 200, 100, &half_closed) - compare(0, 200, 100, &begun), 18);
}

/// A segment that met one state only has shown that one a larger window.
#[test]
fn states_that_know_different_windows_are_compared_by_the_smaller_one() {
    let wide = Segment { flags: 0x10, seq: 41, ack: 21, window: 270, len: 0 };
    let seen_by_one = [Step::Route(None), one(of_connection(false, Kind::Tcp(wide))), Step::Route(Some(2))];
    let data = (0..20).flat_map(|number| {
        let seq = 21 + 20 * number;
        let segments = [segment_of(true, 0x10, seq, 41, 20), segment_of(false, 0x10, 41, seq + 20, 0)];
        // A flow that was taken back is shared again when the clock has moved on.
        [Step::Pause(300)].into_iter().chain(segments.map(one))
    });
    let begun = [&connect()[..], &exchange(3), &seen_by_one].concat();
    let forwarded = compare(0, 200, 100, &[begun.clone(), data.collect()].concat());
    let before = compare(0, 200, 100, &begun);
    assert!(forwarded - before > 34, "{forwarded} {before}");
}

/// Each segment of the burst is judged, as none of them is known when it begins.
#[test]
fn a_burst_of_one_connection_takes_one_entry() {
    for flows in [1, 1000] {
        let ((_routed, mut pair), sets) = (Pair::begun((1000, flows)), rule_sets(0));
        for step in connect() {
            let Step::Burst(packets) = step else { unreachable!() };
            packets.iter().for_each(|sent| pair.send(sent));
        }
        [&mut pair.truth, &mut pair.fast].into_iter().for_each(|one| one.change_rules(&sets[0]));
        pair.round();
        let burst = vec![frame(&segment_of(false, 0x10, 11, 21, 0)); BURST];
        let [truth, fast] = [&mut pair.truth, &mut pair.fast].map(|one| run(&mut one.forwarder, &burst));
        assert_eq!(truth, fast);
        pair.round();
        (0..3).for_each(|_| pair.send(&segment_of(false, 0x10, 11, 21, 0)));
        assert_eq!(pair.program.packets, 3, "room for {flows}");
        assert_eq!(pair.truth.remembered(), pair.fast.remembered());
    }
}

/// Changes a route when a worker sleeps for the first time. When it sleeps again, notes how many entries forward, and stops it.
struct RouteChanges<'p> {
    routed: &'p mut Routed,
    program: &'p Program,
    stop: &'p AtomicBool,
    /// In the last two sleeps.
    forwarding: &'p Cell<[usize; 2]>,
    sleeps: usize,
}

impl<P> Wait<P> for RouteChanges<'_> {
    fn wait(&mut self, _: &[Option<P>]) {
        self.sleeps += 1;
        match self.sleeps {
            1 => self.routed.set("198.19.0.0/16", None),
            _ => self.stop.store(true, Ordering::Relaxed),
        }
        let [_, last] = self.forwarding.get();
        self.forwarding.set([last, self.program.forwarding()]);
    }
}

/// A program in the kernel forwards by the routes that the worker has compared.
#[test]
fn a_worker_compares_all_routes_before_it_sleeps_again() {
    let (mut routed, Pair { mut fast, program, .. }) = Pair::begun((5000, 5000));
    for far in [7, 8, 9, 10] {
        let burst: Vec<_> = (1..=200).map(|near| frame(&udp_between(near, far))).collect();
        (0..3).for_each(|_| drop(run(&mut fast.forwarder, &burst)));
    }
    let (stop, forwarding) = (AtomicBool::new(false), Cell::new([0; 2]));
    let (routed, program) = (&mut routed, &program);
    let wait = RouteChanges { routed, program, stop: &stop, forwarding: &forwarding, sleeps: 0 };
    let (inside, _outside) = memory::pair([0, 0], 1);
    let mut worker = Worker::new(fast.forwarder, vec![Some(inside)], std::iter::empty(), DropAll, wait);
    worker.run(&stop).unwrap();
    let [before, after] = forwarding.get();
    assert!(before > 700 && after == 0, "{before} {after}");
}

#[test]
fn flows_may_be_kept_in_less_room() {
    let (mut routed, mut pair) = Pair::begun((5000, 100));
    let hosts = (1..=50).map(|near| udp_between(near, 7)).collect::<Vec<_>>();
    (0..3).for_each(|_| hosts.iter().for_each(|sent| pair.send(sent)));
    assert_eq!(pair.program.packets, 50);
    pair.fast.forwarder.filter_mut().unwrap().keep_flows(16);
    routed.set("198.19.0.0/16", Some(3));
    pair.round();
    hosts.iter().for_each(|sent| pair.send(sent));
}

/// A program that has found an entry before it ended may still use it.
#[test]
fn an_entry_is_used_again_after_a_barrier_only() {
    let (_routed, mut pair) = Pair::begun((1000, 1));
    (0..5).for_each(|_| pair.send(&udp(false, false)));
    assert_eq!(pair.program.packets, 3);
    pair.fast.forwarder.take_back_flows();
    NOW.set(NOW.get() + 200);
    // Without a barrier.
    pair.program.memory.report_control(NOW.get() * 1_000_000);
    pair.fast.forwarder.change_rules();
    let frames = [frame(&udp(false, false))];
    run(&mut pair.fast.forwarder, &frames);
    assert_eq!(pair.program.forward(0, &frames[0].1, NOW.get()), None);
    pair.program.grace.serve(|| true);
    pair.fast.forwarder.change_rules();
    NOW.set(NOW.get() + 200);
    run(&mut pair.fast.forwarder, &frames);
    assert!(pair.program.forward(0, &frames[0].1, NOW.get()).is_some());
}

#[test]
fn nothing_passes_when_the_worker_or_the_router_is_silent() {
    let (_routed, mut pair) = Pair::begun((1000, 10));
    (0..3).for_each(|_| pair.send(&udp(false, false)));
    let (port, frame) = frame(&udp(false, false));
    assert!(pair.program.forward(port, &frame, NOW.get() + 900).is_some());
    assert_eq!(pair.program.forward(port, &frame, NOW.get() + 1_000), None);
    let later = NOW.get() + 900;
    pair.program.memory.report_control(later * 1_000_000);
    assert_eq!(pair.program.forward(port, &frame, later + 200), None, "the worker has not reported");
    pair.round();
    NOW.set(later + 200);
    pair.fast.forwarder.change_rules();
    pair.program.memory.stop();
    assert_eq!(pair.program.forward(port, &frame, later + 200), None, "the router's thread does not");
}

/// Rules of pf by their numbers in `rule_sets` that several workers enforce.
const OF_SEVERAL: [usize; 11] = [0, 1, 2, 5, 7, 8, 9, 10, 11, 12, 14];

/// A filter that judges all packets, and two workers with the states of one family each, which share the memory of a program.
struct TwoWorkers {
    truth: Compared,
    fast: [Compared; 2],
    program: Program,
}

impl TwoWorkers {
    fn new(views: &Views, flows: u16) -> TwoWorkers {
        let rules = &rule_sets(0)[0];
        let compared = |known| Compared::new(views, rules, WorkerLimits::default(), known);
        let (truth, mut fast) = (compared(0), [1000, 1000].map(compared));
        let [first, second] = fast.each_mut().map(|worker| worker.forwarder.filter_mut().unwrap());
        let program = Program::new(flows, [first, second].into_iter());
        TwoWorkers { truth, fast, program }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Compared> {
        [&mut self.truth].into_iter().chain(&mut self.fast)
    }

    fn round(&mut self) {
        self.program.memory.report_control(NOW.get() * 1_000_000);
        for _ in 0..2 {
            self.all().for_each(|one| one.forwarder.change_rules());
        }
        self.program.grace.serve(|| true);
    }

    fn send(&mut self, sent: &Sent) {
        let (port, frame) = frame(sent);
        let expected = run(&mut self.truth.forwarder, &[(port, frame.clone())]);
        let worker = &mut self.fast[usize::from(sent.inet6)];
        let fate = match self.program.forward(port, &frame, NOW.get()) {
            Some((port, frame)) => vec![Fate::Sent { port, frame }],
            None => run(&mut worker.forwarder, &[(port, frame)]),
        };
        assert_eq!(expected, fate, "{sent:?}");
        self.round();
    }

    /// What the one filter has counted by interface and by rule, and what both workers have.
    fn counted(&mut self) -> [(Counters, Vec<(u64, u64)>); 2] {
        self.all().for_each(|one| one.forwarder.take_back_flows());
        let of = |one: &mut Compared| (one.forwarder.counters().clone(), one.remembered().1);
        let (truth, [first, second]) = (of(&mut self.truth), self.fast.each_mut().map(of));
        let mut counters = first.0;
        counters.add(&second.0);
        let rules = first.1.iter().zip(&second.1).map(|(one, other)| (one.0 + other.0, one.1 + other.1));
        [truth, (counters, rules.collect())]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn workers_that_share_memory_change_no_verdict_and_no_counter(
        flows in prop_oneof![Just(2_u16), Just(5), Just(1000)],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        NOW.set(1_000_000);
        let (routed, sets) = (Routed::new(), rule_sets(0));
        let views = Views::new(view(&routed, 0));
        let mut workers = TwoWorkers::new(&views, flows);
        workers.round();
        for step in &steps {
            match step {
                Step::Burst(packets) => packets.iter().for_each(|sent| workers.send(sent)),
                Step::Pause(milliseconds) => NOW.set(NOW.get() + milliseconds),
                Step::Rules(number) => {
                    let rules = &sets[OF_SEVERAL[number % OF_SEVERAL.len()]];
                    workers.all().for_each(|one| one.change_rules(rules));
                }
                Step::View(number) => publish(&views, view(&routed, *number), &workers.program),
                Step::Idle | Step::Route(_) | Step::Link(..) => {}
            }
            workers.round();
        }
        let [truth, counted] = workers.counted();
        prop_assert_eq!(truth, counted);
    }
}

#[test]
fn each_worker_has_its_entries_and_its_silence_ends_no_others() {
    NOW.set(1_000_000);
    let routed = Routed::new();
    let views = Views::new(view(&routed, 0));
    let mut workers = TwoWorkers::new(&views, 2);
    workers.round();
    let both = [udp(false, false), udp(false, true)];
    (0..3).for_each(|_| both.iter().for_each(|sent| workers.send(sent)));
    assert_eq!(workers.program.packets, 2, "each has room for one");
    NOW.set(NOW.get() + 900);
    workers.program.memory.report_control(NOW.get() * 1_000_000);
    workers.fast[0].forwarder.change_rules();
    let later = NOW.get() + 200;
    let passes = |sent: &Sent| {
        let (port, frame) = frame(sent);
        workers.program.forward(port, &frame, later).is_some()
    };
    assert_eq!(both.each_ref().map(passes), [true, false]);
}
