//! Copies of packets that the program makes for this process.

use std::num::NonZeroU32;
use std::sync::Arc;

use fullview_plane::engine::{Engine, ProgramObserver, XdpInterface, XdpNextHop, XdpReason};
use fullview_plane::observed::PacketObserver;
use fullview_plane::program_verdict::ProgramVerdict;
use fullview_plane::sample::{Decision, MOST_HEADER, PacketSample};
use fullview_plane::sample_backlog::SampleBacklog;
use fullview_plane::trace::TraceRequest;
use fullview_table::{NextHop, Prefix, Rib};

use super::dut::{DEVICE, Hook, at_each_hook, engine, plan, run, tables};
use super::frames::{frame, tagged};

/// Forwards 198.18.0.0/16; what is for 198.19.0.0/16 is dropped, and the rest has no route.
fn observed_engine() -> Engine {
    let mut plan = plan(1);
    plan.interfaces.push(XdpInterface { number: 1, vlan: 7, ..plan.interfaces[0] });
    plan.next_hops.push((NextHop(2), XdpNextHop::Blackhole));
    let mut rib = Rib::default();
    rib.announce("198.18.0.0/16".parse().unwrap(), NextHop(1));
    rib.announce("198.19.0.0/16".parse().unwrap(), NextHop(2));
    let mut engine = engine(&plan, tables(&rib, &Rib::default()));
    engine.observe(true).unwrap();
    engine
}

/// Port 1 is the device of the test runs.
fn observer(engine: &Engine, sample: Option<u32>) -> ProgramObserver {
    engine.observer(vec![0, DEVICE], sample.and_then(NonZeroU32::new)).unwrap()
}

fn samples(observer: &mut ProgramObserver, backlog: &mut SampleBacklog) -> Vec<PacketSample> {
    assert_eq!(observer.read(backlog).missed, 0);
    backlog.take()
}

fn to(destination: u32) -> Vec<u8> {
    frame(0xc000_0201u32, destination)
}

#[test]
fn samples_say_what_became_of_packets_as_they_came_in() {
    at_each_hook(|hook| {
        let mut engine = observed_engine();
        let mut observer = observer(&engine, Some(1));
        let program = &hook.program(&mut engine);
        let long = [to(0xc612_0001), vec![9; 1000]].concat();
        for sent in [&long, &to(0xc613_0001), &to(0x0b00_0001), &tagged(&to(0xc612_0001), 7)] {
            run(program, sent);
        }
        let taken = samples(&mut observer, &mut SampleBacklog::default());
        let facts = |sample: &PacketSample| (sample.port, sample.decision, sample.egress, sample.frame_len);
        let refused = |reason| Decision::Program(ProgramVerdict::Refuse(reason));
        let sent = Decision::Program(ProgramVerdict::Forward);
        let wanted = [
            (1, sent, Some(1), 1060),
            (1, refused(XdpReason::Blackhole), None, 60),
            (1, refused(XdpReason::NoRoute), None, 60),
            (1, sent, Some(1), 64),
        ];
        assert_eq!(taken.iter().map(facts).collect::<Vec<_>>(), wanted);
        assert!(taken.iter().all(|sample| (sample.passed, sample.lost) == (1, 0)));
        assert_eq!(taken[0].header(), &long[..MOST_HEADER], "before the TTL and the addresses change");
        assert_eq!(taken[3].header(), &tagged(&to(0xc612_0001), 7)[..]);
    });
}

#[test]
fn gaps_between_samples_are_those_of_workers() {
    at_each_hook(|hook| {
        let mut engine = observed_engine();
        let (mut observer, mut backlog) = (observer(&engine, Some(10)), SampleBacklog::default());
        let program = &hook.program(&mut engine);
        (0..5_000).for_each(|_| drop(run(program, &to(0xc612_0001))));
        let taken = samples(&mut observer, &mut backlog);
        assert!((400..600).contains(&taken.len()), "{}", taken.len());
        assert!(taken.iter().all(|sample| (1..=19).contains(&sample.passed)));
        let passed: u64 = taken.iter().map(|sample| sample.passed).sum();
        assert!((4_900..=5_000).contains(&passed), "{passed}");
    });
}

#[test]
fn samples_that_found_no_room_are_counted_with_their_packets() {
    at_each_hook(|hook| {
        const SENT: u64 = 12_000;
        let mut engine = observed_engine();
        let (mut observer, mut backlog) = (observer(&engine, Some(1)), SampleBacklog::default());
        let program = &hook.program(&mut engine);
        (0..SENT).for_each(|_| drop(run(program, &to(0xc612_0001))));
        let taken = samples(&mut observer, &mut backlog);
        let lost: u64 = taken.iter().map(|sample| sample.lost).sum();
        let passed: u64 = taken.iter().map(|sample| sample.passed).sum();
        assert!(lost > 0 && taken.len() as u64 + lost == SENT && passed == SENT, "{lost} {passed}");
        run(program, &to(0xc612_0001));
        let next = samples(&mut observer, &mut backlog);
        assert_eq!(next.iter().map(|sample| (sample.passed, sample.lost)).collect::<Vec<_>>(), [(1, 0)]);
    });
}

fn request(text: &str, drops_only: bool) -> Arc<TraceRequest> {
    Arc::new(TraceRequest::new(text.parse().unwrap(), drops_only, 1))
}

/// The verdicts and the frames that a program copies of these frames.
fn watched(hook: Hook, requests: &[Arc<TraceRequest>], sent: &[Vec<u8>]) -> Vec<(ProgramVerdict, Vec<u8>)> {
    let mut engine = observed_engine();
    let mut observer = observer(&engine, None);
    observer.watch(requests);
    let program = &hook.program(&mut engine);
    sent.iter().for_each(|frame| drop(run(program, frame)));
    let mut backlog = SampleBacklog::default();
    let observed = observer.read(&mut backlog);
    assert!(backlog.take().is_empty() && observed.missed == 0);
    assert!(observed.packets.iter().all(|packet| packet.port == 1 && !packet.is_cut()));
    observed.packets.into_iter().map(|packet| (packet.verdict, packet.frame)).collect()
}

const NO_ROUTE: ProgramVerdict = ProgramVerdict::Refuse(XdpReason::NoRoute);
const BLACKHOLE: ProgramVerdict = ProgramVerdict::Refuse(XdpReason::Blackhole);

#[test]
fn a_watch_copies_whole_frames_that_match() {
    at_each_hook(|hook| {
        let long = |to: Vec<u8>| [to, vec![9; 1400]].concat();
        let sent = [to(0xc612_0001), to(0xc613_0001), to(0x0b00_0001)].map(long);
        let copied = watched(hook, &[request("", false)], &sent);
        let verdicts = [ProgramVerdict::Forward, BLACKHOLE, NO_ROUTE];
        assert_eq!(copied, verdicts.into_iter().zip(sent.clone()).collect::<Vec<_>>());
        let copied = watched(hook, &[request("dst 198.19.0.0/17", false)], &sent);
        assert_eq!(copied, [(BLACKHOLE, sent[1].clone())]);
        let copied = watched(hook, &[request("", true)], &sent);
        assert_eq!(copied, [(BLACKHOLE, sent[1].clone()), (NO_ROUTE, sent[2].clone())]);
        let both = [request("dst 11.0.0.1", true), request("dst 198.18.0.1", false)];
        let copied = watched(hook, &both, &sent);
        assert_eq!(copied, [(ProgramVerdict::Forward, sent[0].clone()), (NO_ROUTE, sent[2].clone())]);
        assert!(watched(hook, &[request("inet6", false)], &sent).is_empty());
    });
}

#[test]
fn a_watch_compares_vlans_protocols_and_ports() {
    at_each_hook(|hook| {
        let mut udp = to(0xc612_0001);
        udp[23] = 17;
        udp[34..38].copy_from_slice(&[0x03, 0xe8, 0, 53]);
        let sent = [tagged(&udp, 7), udp];
        for (text, wanted) in [
            ("vlan 7", &sent[..1]),
            ("udp and dport 53", &sent[..]),
            ("sport 1000 and vlan 0", &sent[1..]),
            ("dport 54", &[]),
            ("tcp", &[]),
        ] {
            let copied: Vec<_> =
                watched(hook, &[request(text, false)], &sent).into_iter().map(|(_, frame)| frame).collect();
            assert_eq!(copied, wanted, "{text}");
        }
    });
}

#[test]
fn packets_are_those_of_the_port_that_has_the_device_now() {
    at_each_hook(|hook| {
        let mut engine = observed_engine();
        let (mut observer, mut backlog) = (observer(&engine, None), SampleBacklog::default());
        let program = &hook.program(&mut engine);
        for (devices, ports) in [(vec![0, DEVICE], &[1][..]), (vec![DEVICE, 9], &[0]), (vec![8, 9], &[])] {
            observer.follow_devices(devices);
            observer.watch(&[request("", false)]);
            run(program, &to(0xc612_0001));
            let observed = observer.read(&mut backlog).packets;
            assert_eq!(observed.iter().map(|packet| packet.port).collect::<Vec<_>>(), ports);
        }
    });
}

#[test]
fn nothing_is_copied_while_nothing_is_observed() {
    at_each_hook(|hook| {
        let mut rib = Rib::default();
        rib.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan(1), tables(&rib, &Rib::default()));
        let (mut observer, mut backlog) = (observer(&engine, Some(1)), SampleBacklog::default());
        observer.watch(&[request("", false)]);
        let mut copies = |engine: &mut Engine, is_observed| {
            engine.observe(is_observed).unwrap();
            run(&hook.program(engine), &to(0xc612_0001));
            (observer.read(&mut backlog).packets.len(), backlog.take().len())
        };
        assert_eq!(copies(&mut engine, false), (0, 0));
        assert_eq!(copies(&mut engine, true), (1, 1));
        assert_eq!(copies(&mut engine, false), (0, 0));
    });
}
