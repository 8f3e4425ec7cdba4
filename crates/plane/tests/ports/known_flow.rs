//! The classifier forwards frames of a known flow as the worker does, and leaves all other frames to the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fullview_filter::rule::{CompiledRule, RuleAction, StateOptions, Tracking};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::WorkerLimits;
use fullview_plane::adjacency::{Adjacencies, Adjacency};
use fullview_plane::burst::Burst;
use fullview_plane::forward::{BurstFilter, EnforceableRules, Forwarder};
use fullview_plane::interface::Interface;
use fullview_plane::kernel_flows::{
    FlowControl, FlowRegions, FlowSharing, GraceThread, PortDevice, PortProgram,
};
use fullview_plane::noted_links::NotedLinks;
use fullview_plane::port::Port;
use fullview_plane::port::classify::{CLASSES, Classifier, IngressKey, IngressSettings, RedirectScope};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::umem::Umem;
use fullview_plane::port::xdp::{XdpOptions, XdpPort};
use fullview_plane::report_time::ReportTime;
use fullview_plane::view::{TableReaders, View, ViewParts, Views};
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::{Algorithm, linear::Linear};
use fullview_table::{NextHop, Rib};
use fullview_testnet::current::{accept_redirected_frames, ip, keep_tags};
use fullview_testnet::in_namespace;

use crate::classify::{answers, arrived, open, put, routing_kernel};
use crate::conformance::{PATIENCE, Pool};
use crate::packets::{ROUTER, echo, tcp, tcp6, udp, udp6};

const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
/// The VLAN of both ports.
const VLAN: u16 = 7;
const SLOTS: usize = 12_000;
/// Rounds in which a frame leaves, if it does.
const ROUNDS: usize = 10;
/// More than a step of the filter's clock.
const STEP: Duration = Duration::from_millis(150);

/// A router with the ports `in` and `out`, which passes everything and keeps states.
struct Router {
    classifier: Classifier,
    control: FlowControl,
    _grace: GraceThread,
    views: Views,
    forwarder: Forwarder,
    ports: [Box<dyn Port<'static>>; 2],
}

fn view() -> View {
    let on = |port, vlan| Interface { vlan, ..Interface::new(port, Mac(ROUTER)) };
    let mut adjacencies = Adjacencies::new();
    for interface in 0..4 {
        adjacencies.set(NextHop(interface + 1), Adjacency::Neighbor { interface, mac: Mac(NEXT) });
    }
    let (mut inet, mut inet6) = (Rib::<u32>::default(), Rib::<u128>::default());
    for (prefix, hop) in [("198.19.0.0/17", 2), ("198.19.128.0/17", 4), ("198.18.0.0/24", 1)] {
        inet.announce(prefix.parse().unwrap(), NextHop(hop));
    }
    for (prefix, hop) in [("2001:db8:2::/48", 2), ("2001:db8:1::/48", 1)] {
        inet6.announce(prefix.parse().unwrap(), NextHop(hop));
    }
    let table =
        TableReaders::fixed(Linear.compile(&inet).unwrap().fib(), Linear.compile(&inet6).unwrap().fib());
    let interfaces = vec![on(0, None), on(1, None), on(0, Some(VLAN)), on(1, Some(VLAN))];
    View::new(ViewParts::new(interfaces, adjacencies, table)).unwrap()
}

/// Rules of pf that pass everything, with states that follow connections so.
pub fn pass_with_states(tracking: Tracking) -> RuleSet {
    let mut parts = RuleSetParts::new(Language::Pf);
    let state = StateOptions { tracking, ..StateOptions::default() };
    parts.rules = vec![CompiledRule { state: Some(state), ..CompiledRule::new(RuleAction::Pass) }];
    RuleSet::new(parts).unwrap()
}

/// Opens both ports where the classifier's programs run.
fn open_ports(program: PortProgram, classifier: &mut Classifier, umem: &Umem) -> [Box<dyn Port<'static>>; 2] {
    [(0, "in"), (1, "out")].map(|(number, name)| -> Box<dyn Port<'static>> {
        let link = Link::named(name).unwrap();
        if program == PortProgram::Xdp {
            keep_tags(name);
            let port = XdpPort::open(number, name, umem, XdpOptions::default()).unwrap();
            classifier.redirect(&link, RedirectScope::Forwardable, &[port.as_fd()]).unwrap();
            return Box::new(port);
        }
        let filter = Some(classifier.filter().unwrap());
        let port = PacketPort::open(number, name, PacketOptions { filter, ..Default::default() }).unwrap();
        classifier.take_from_kernel(&link).unwrap();
        Box::new(port)
    })
}

impl Router {
    fn new(program: PortProgram, tracking: Tracking, umem: &Umem) -> Router {
        let mut classifier = Classifier::load_for_filter(Some(FlowRegions::new(16, 1))).unwrap();
        let grace = GraceThread::start().unwrap();
        let memory = Arc::new(classifier.flow_memory().unwrap().unwrap());
        let links = ["in", "out"].map(|name| Link::named(name).unwrap());
        let station = IngressSettings {
            mac: Mac(ROUTER),
            forwards_inet: true,
            forwards_inet6: true,
            leaves_tcp: false,
        };
        let places = links.iter().flat_map(|link| [None, Some(VLAN)].map(|vlan| (link.index(), vlan)));
        let places = places.map(|(interface, vlan)| (IngressKey { interface, vlan }, station));
        classifier.set_ingress(&places.collect::<HashMap<_, _>>()).unwrap();
        let ports = open_ports(program, &mut classifier, umem);
        let rules = EnforceableRules::new(pass_with_states(tracking)).unwrap();
        let mut filter = BurstFilter::new(&rules, WorkerLimits::default(), 1);
        filter.share_flows(FlowSharing::new(Arc::clone(&memory), grace.periods(), 0));
        let device =
            |link: &Link| PortDevice { index: link.index(), program: Some(program), takes_frames: true };
        filter.set_devices(links.iter().map(device).collect());
        let views = Views::new(view());
        let mut forwarder = Forwarder::new(views.reader());
        forwarder.set_filter(filter);
        let control = FlowControl::new(memory);
        Router { classifier, control, _grace: grace, views, forwarder, ports }
    }

    /// What the worker does once it has received what there is.
    fn round(&mut self, pool: &mut Pool<'static>) {
        self.control.follow(&self.views.current(), ReportTime::now());
        self.forwarder.change_rules();
        for number in 0..2 {
            let mut burst = pool.take(32);
            self.ports[number].recycle(&mut burst);
            pool.give(&mut burst);
            self.ports[number].receive(&mut burst, 64).unwrap();
            let (mut out, mut rejected) = ([Burst::new(), Burst::new()], Burst::new());
            self.forwarder.process(&mut burst, &mut out[..], &mut rejected);
            pool.give(&mut rejected);
            for (port, burst) in self.ports.iter_mut().zip(&mut out) {
                port.transmit(burst).unwrap();
                pool.give(burst);
                port.reclaim(burst);
                pool.give(burst);
            }
        }
    }

    fn counts(&mut self) -> [u64; CLASSES.len()] {
        self.classifier.counts().unwrap()
    }
}

pub fn edit(mut frame: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    frame[at..][..bytes.len()].copy_from_slice(bytes);
    frame
}

fn tagged(mut frame: Vec<u8>, vlan: u16) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0].into_iter().chain(vlan.to_be_bytes()));
    frame
}

fn padded(mut frame: Vec<u8>, len: usize) -> Vec<u8> {
    frame.resize(len, 0);
    frame
}

const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
const RST: u8 = 0x04;
pub const PUSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECE: u8 = 0x40;

const TO: &str = "198.19.0.1";
const TO_VLAN: &str = "198.19.128.1";

/// Frames that a known flow may have.
fn plain() -> Vec<Vec<u8>> {
    vec![
        udp(TO, 64, 18),
        udp(TO, 2, 0),
        udp(TO, 64, 1472),
        padded(udp(TO, 64, 3), 60),
        tagged(udp(TO, 64, 18), 0),
        tagged(udp(TO, 64, 18), VLAN),
        udp(TO_VLAN, 64, 18),
        tagged(udp(TO_VLAN, 64, 18), VLAN),
        udp6("2001:db8:2::1", 64, 17, 18),
        udp6("2001:db8:2::1", 2, 17, 1400),
        tcp(TO, ACK, 100),
        padded(tcp(TO, ACK | PUSH, 1), 60),
        tagged(tcp(TO_VLAN, ACK, 0), VLAN),
        tcp6("2001:db8:2::1", ACK, 100),
        tcp6("2001:db8:2::1", ACK | PUSH, 0),
    ]
}

/// Frames that belong to such a flow, or nearly, and are for the worker.
fn special() -> Vec<Vec<u8>> {
    let inet6 = || udp6("2001:db8:2::1", 64, 17, 18);
    vec![
        udp(TO, 1, 18),
        edit(udp(TO, 64, 18), 24, &[1, 2]),
        edit(udp(TO, 64, 18), 14, &[0x46]),
        edit(udp(TO, 64, 18), 20, &[0x20, 0]),
        edit(udp(TO, 64, 18), 20, &[0, 2]),
        edit(udp(TO, 64, 18), 16, &[0, 27]),
        edit(udp(TO, 64, 18), 16, &[1, 0]),
        edit(udp(TO, 64, 18), 5, &[0xcc]),
        edit(udp(TO, 64, 18), 34, &[9, 9]),
        edit(udp(TO, 64, 18), 28, &[9]),
        edit(udp(TO, 64, 18), 12, &[0x86, 0xdd]),
        tagged(udp(TO, 64, 18), 9),
        echo(TO),
        udp(TO, 64, 1473),
        udp6("2001:db8:2::1", 1, 17, 18),
        udp6("2001:db8:2::1", 64, 44, 18),
        edit(inet6(), 14, &[0x40]),
        edit(inet6(), 18, &[0, 7]),
        edit(inet6(), 18, &[9, 9]),
        udp(TO, 64, 18)[..40].to_vec(),
        tcp(TO, 0, 18),
        tcp(TO, SYN, 18),
        tcp(TO, ACK | SYN, 18),
        tcp(TO, ACK | URG, 18),
        tcp(TO, ACK | ECE, 18),
        edit(tcp(TO, ACK, 18), 46, &[0x40]),
        edit(tcp(TO, ACK, 18), 46, &[0xa0]),
        edit(tcp(TO, ACK, 18), 34, &[9, 9]),
        tcp(TO, ACK, 18)[..46].to_vec(),
        tcp6("2001:db8:2::1", ACK | SYN, 18),
        edit(tcp6("2001:db8:2::1", ACK, 18), 66, &[0xa0]),
        tcp(TO, ACK | FIN, 18),
        tcp6("2001:db8:2::1", ACK | FIN, 18),
        // A connection that was reset is no known flow any more.
        tcp(TO, RST, 18),
    ]
}

/// The router between a source and a sink.
pub struct FlowLab {
    router: Router,
    source: PacketPort<'static>,
    sink: PacketPort<'static>,
    pool: Pool<'static>,
    _umem: Umem,
}

impl FlowLab {
    pub fn new(program: PortProgram, tracking: Tracking) -> FlowLab {
        routing_kernel();
        for end in ["in", "source"] {
            ip(&format!("link set dev {end} mtu 1600"));
        }
        ["source", "sink"].into_iter().for_each(accept_redirected_frames);
        let (umem, packets) = Umem::new(SLOTS);
        let (router, pool) = (Router::new(program, tracking, &umem), Pool::of(packets));
        let mut lab = FlowLab { router, source: open("source"), sink: open("sink"), pool, _umem: umem };
        // Ports have slots before the first frame comes.
        lab.router.round(&mut lab.pool);
        lab
    }

    /// What arrives of a frame, and how many frames the classifier forwarded.
    fn carry(&mut self, frame: &[u8]) -> (Vec<Vec<u8>>, u64) {
        self.carry_from(false, frame)
    }

    /// The same for a frame of the sink.
    pub fn carry_from(&mut self, is_from_sink: bool, frame: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let before = self.router.counts();
        let FlowLab { source, sink, pool, .. } = self;
        let sender = if is_from_sink { &mut *sink } else { &mut *source };
        put(sender, pool, &[frame.to_vec()]);
        let of =
            |class: &str, counts: &[u64]| counts[CLASSES.iter().position(|name| *name == class).unwrap()];
        let mut after = before;
        for _ in 0..PATIENCE {
            after = self.router.counts();
            if after != before {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let [known, forwarded] =
            ["known_flow", "forward"].map(|class| of(class, &after) - of(class, &before));
        let mut frames = Vec::new();
        for _ in 0..ROUNDS {
            self.router.round(&mut self.pool);
            let FlowLab { source, sink, pool, .. } = self;
            frames = arrived(if is_from_sink { source } else { sink }, pool);
            if !frames.is_empty() || known + forwarded == 0 {
                break;
            }
        }
        (frames, known)
    }
}

fn forwards_frames_as_the_worker(program: PortProgram) {
    in_namespace(|| {
        let mut lab = FlowLab::new(program, Tracking::Sloppy);
        for frame in plain() {
            (0..2).for_each(|_| assert_eq!(lab.carry(&frame).0.len(), 1, "{frame:02x?}"));
            lab.router.forwarder.take_back_flows();
            let by_worker = lab.carry(&frame);
            assert_eq!((by_worker.0.len(), by_worker.1), (1, 0), "{frame:02x?}");
            // The worker shares a flow again when its clock has moved on.
            thread::sleep(STEP);
            lab.carry(&frame);
            assert_eq!(lab.carry(&frame), (by_worker.0, 1), "{frame:02x?}");
        }
        let inet6 = "2001:db8:2::1";
        let known = [udp(TO, 64, 18), udp6(inet6, 64, 17, 18), tcp(TO, ACK, 18), tcp6(inet6, ACK, 18)];
        for frame in special() {
            for known in &known {
                // After a segment that changes its connection a flow is learned again.
                lab.carry(known);
                assert_eq!(lab.carry(known).1, 1, "{known:02x?} before {frame:02x?}");
            }
            assert_eq!(lab.carry(&frame).1, 0, "{frame:02x?}");
        }
    });
}

#[test]
fn frames_of_known_flows_leave_as_the_worker_sends_them() {
    forwards_frames_as_the_worker(PortProgram::Tc);
}

#[test]
fn frames_of_known_flows_leave_the_driver_as_the_worker_sends_them() {
    forwards_frames_as_the_worker(PortProgram::Xdp);
}

/// The worker has not run since the link failed.
#[test]
fn frames_of_known_flows_do_not_leave_by_a_failed_link() {
    for program in [PortProgram::Tc, PortProgram::Xdp] {
        in_namespace(|| {
            let mut lab = FlowLab::new(program, Tracking::Sloppy);
            let out = Link::named("out").unwrap().index();
            let links = NotedLinks::shared(lab.router.classifier.link_words().unwrap());
            links.begin(lab.router.classifier.note_failed_links().unwrap());
            let frame = udp(TO, 64, 18);
            (0..2).for_each(|_| assert_eq!(lab.carry(&frame).0.len(), 1));
            let FlowLab { router: Router { classifier, ports: [port, _], .. }, source, pool, .. } = &mut lab;
            answers(classifier, source, &mut **port, pool, "known_flow", &frame);
            ip("link set dev out down");
            assert!(links.has_failed(out));
            answers(classifier, source, &mut **port, pool, "forward", &frame);
        });
    }
}
