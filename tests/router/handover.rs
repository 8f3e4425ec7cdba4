//! A new process takes the place of a running router while numbered packets flow: none is lost, and none arrives twice. If the
//! new process fails or is killed, the running router goes on.

use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::engine::{Engine, XdpConfig};
use fullview_plane::port::link::Link;
use fullview_plane::view::TableReaders;
use fullview_router::control::takeover::PROTOCOL;
use fullview_router::takeover::Predecessor;
use fullview_table::Rib;
use fullview_table::fib::registry::{self, Registered};
use fullview_testnet::{ANSWER, Program, eventually, may_run};

use crate::control::{Control, ask, connect};
use crate::kernel_filter::{FilterLab, PF};
use crate::lab::{Lab, forwarded_by_kernel, reaches};
use crate::traffic::{Receiver, Sender, lost, twice};
use crate::xdp::prepare;

pub const PROGRAMS: [&str; 3] = ["ip", "ethtool", "setpriv"];
/// The number of packets that is enough to see that they flow.
pub const SOME: usize = 300;
/// The line of a router that has taken another one's place.
pub const TAKEN: &str = "has taken the place of process";

/// A lab with packets that flow through it.
pub struct FlowLab {
    pub lab: Lab,
    pub control: Control,
    engine: &'static str,
    flow: Option<(Sender, Receiver)>,
}

impl FlowLab {
    pub fn new(engine: &'static str) -> FlowLab {
        let lab = Lab::new();
        prepare(&lab, engine);
        lab.keep_tags();
        let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&from, &to, "10.0.2.2:9"), "the kernel forwards");
        let sender = Sender::start(from, |_| Ipv4Addr::new(10, 0, 2, 2));
        FlowLab { lab, control: Control::new(), engine, flow: Some((sender, Receiver::start(to))) }
    }

    /// Starts a router, and waits until it forwards the packets.
    pub fn start(&self) -> Program {
        let options = [&self.control.options()[..], &["--engine", self.engine]].concat();
        let program = self.lab.forward(&options);
        self.wait_until_forwarded();
        program
    }

    /// Waits until a router forwards the packets.
    pub fn wait_until_forwarded(&self) {
        self.control.wait_until("\"counters\"", |of| of["sent"]["packets"].as_u64() > Some(0));
    }

    /// Starts a router that takes the running one's place, without waiting for it.
    fn begin_takeover(&self, engine: &str) -> Program {
        self.begin_takeover_with(&["--interfaces", "eth1,eth2", "--engine", engine])
    }

    /// The same with these options.
    pub fn begin_takeover_with(&self, options: &[&str]) -> Program {
        let arguments = [&["forward", "--takeover"], options, &self.control.options()].concat();
        self.lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments)
    }

    fn take_over(&self) -> Program {
        let mut program = self.begin_takeover(self.engine);
        program.wait_for(TAKEN);
        program
    }

    pub fn wait_for_packets(&self) {
        self.flow.iter().for_each(|(_, receiver)| receiver.wait_for(SOME));
    }

    /// How many packets were sent so far.
    pub fn sent(&self) -> u32 {
        self.flow.as_ref().map_or(0, |(sender, _)| sender.sent())
    }

    /// How many packets the kernel has forwarded.
    pub fn forwarded_by_kernel(&self) -> u64 {
        forwarded_by_kernel(&self.lab.router)
    }

    /// How many packets the programs have left to the kernel because the process had no core in time, or asked for a neighbour.
    pub fn left_to_kernel(&self) -> u64 {
        let counters = self.control.ask("\"counters\"");
        let count = |reason| counters["program"][reason].as_u64().unwrap_or(0);
        count("router_stalled") + count("no_neighbor")
    }

    /// Ends the packets; returns how many were sent, which were lost, and which arrived twice.
    pub fn end(&mut self) -> (u32, Vec<u32>, Vec<u32>) {
        let (sender, receiver) = self.flow.take().unwrap();
        let sent = sender.end();
        let arrived = receiver.end();
        (sent, lost(sent, &arrived), twice(&arrived))
    }
}

pub fn socket(control: &Control) -> PathBuf {
    control.options()[1].into()
}

/// The number before this word in a program's summary.
fn counted(output: &str, word: &str) -> u64 {
    let count = |line: &str| line.strip_suffix(&format!(" {word}"))?.rsplit(' ').next()?.parse().ok();
    output.lines().find_map(count).unwrap_or_else(|| panic!("no {word} in {output}"))
}

fn programs_change_without_a_lost_packet(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new(engine);
    let mut program = lab.start();
    let (left, by_kernel) = (lab.left_to_kernel(), lab.forwarded_by_kernel());
    for _ in 0..3 {
        lab.wait_for_packets();
        let next = lab.take_over();
        assert!(eventually(|| !program.is_running()), "the other process ends: {}", program.output());
        let output = program.output();
        assert!(
            output.contains("has taken this router's place") && output.contains(" forwarded"),
            "{output}"
        );
        program = next;
        lab.wait_for_packets();
        // The socket is that of the new process.
        assert_eq!(lab.control.ask("\"interfaces\"")[0]["engine"]["name"], engine);
    }
    let by_kernel = lab.forwarded_by_kernel() - by_kernel;
    let left = lab.left_to_kernel() - left;
    assert!(by_kernel <= left, "{by_kernel} packets met no program, or were among {left}");
    let (sent, lost, twice) = lab.end();
    assert_eq!((lost, twice), (vec![], vec![]));
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
    assert!(!socket(&lab.control).exists(), "the last process removes the socket");
    let forwarded = counted(&output, "forwarded") + lab.forwarded_by_kernel();
    assert!(forwarded >= u64::from(sent), "counters go on: {forwarded} of {sent} packets in {output}");
}

/// Kills new processes at many moments.
fn a_killed_process_changes_nothing(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new(engine);
    let mut program = lab.start();
    let begun = Instant::now();
    let next = lab.take_over();
    let whole = begun.elapsed();
    drop(std::mem::replace(&mut program, next));
    let mut went_on = 0;
    for part in 1..=12 {
        let killed = lab.begin_takeover(engine);
        thread::sleep(whole * part / 12);
        killed.end("KILL");
        lab.wait_for_packets();
        if program.is_running() {
            went_on += 1;
            lab.control.ask("\"counters\"");
        } else {
            program = lab.start();
        }
    }
    assert!(went_on > 0, "no process was killed before it had taken over");
    let (_, lost, twice) = lab.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

/// A program that passes all packets to the kernel, in the place of the running router's.
fn idle_engine(interface: &str, engine: &str, predecessor: &mut Predecessor) -> Engine {
    fn empty<A: Registered>(name: &str) -> std::sync::Arc<dyn fullview_table::fib::Fib<A>> {
        registry::find::<A>(name).unwrap().compile(&Rib::default()).unwrap().fib()
    }
    let mut idle = Engine::load().unwrap();
    idle.await_links();
    let index = Link::named(interface).unwrap().index();
    match engine {
        "tc" => idle.attach_at_tcx(index).unwrap(),
        _ => idle.attach_reading_tags(index).unwrap(),
    }
    idle.publish(&XdpConfig::default(), vec![TableReaders::fixed(empty("dir18"), empty("btree6"))]).unwrap();
    let (of, link) = predecessor.hand_over(interface).unwrap().unwrap();
    assert_eq!(of, index);
    idle.take_links([(index, link)].into()).unwrap();
    idle
}

/// The request with which a process begins.
pub fn begin(protocol: u32) -> String {
    format!("{{\"take-over\":{{\"protocol\":{protocol},\"process\":1}}}}")
}

/// The new process ends when it has put a program of its own on one interface and has all links.
fn the_running_router_puts_its_programs_back(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new(engine);
    let mut program = lab.start();
    let path = socket(&lab.control);
    let (idle, predecessor) = lab.lab.router.run(move || {
        let mut predecessor = Predecessor::find(&path, None).unwrap().unwrap();
        let idle = idle_engine("eth1", engine, &mut predecessor);
        assert!(predecessor.hand_over("eth2").unwrap().is_some());
        (idle, predecessor)
    });
    let before = lab.forwarded_by_kernel();
    lab.wait_for_packets();
    assert!(lab.forwarded_by_kernel() > before + 100, "the other program passes packets to the kernel");
    let mut client = connect(&socket(&lab.control));
    let second = ask(&mut client, &begin(PROTOCOL)).to_string();
    assert!(second.contains("another process is taking its place"), "{second}");
    drop((idle, predecessor));
    assert!(eventually(|| program.output().contains("this one goes on")), "{}", program.output());
    // The answer comes after the programs are back.
    lab.control.ask("\"counters\"");
    let forwards = || {
        let by_kernel = lab.forwarded_by_kernel();
        lab.wait_for_packets();
        lab.forwarded_by_kernel() == by_kernel
    };
    assert!(eventually(forwards), "the router's program forwards again");
    assert!(program.is_running());
    let (_, lost, twice) = lab.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

with_each_program!(
    programs_change_without_a_lost_packet,
    a_killed_process_changes_nothing,
    the_running_router_puts_its_programs_back,
);

#[test]
fn generic_programs_change_without_a_lost_packet() {
    programs_change_without_a_lost_packet("xdp-generic");
}

#[test]
fn threads_lose_what_is_in_their_rings_at_most() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("threads");
    let mut program = lab.start();
    for _ in 0..3 {
        lab.wait_for_packets();
        let before = lab.sent();
        let next = lab.take_over();
        assert!(eventually(|| !program.is_running()), "the other process ends");
        program = next;
        lab.wait_for_packets();
        println!("packets {before} to {} were sent while the process changed", lab.sent());
    }
    let (sent, lost, twice) = lab.end();
    println!("{} of {sent} packets were lost: {lost:?}", lost.len());
    assert_eq!(twice, [0; 0]);
    assert!(lost.len() < 300, "{lost:?}");
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_router_hands_over_only_to_one_that_forwards_as_it_does() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let mut program = lab.start();
    for (engine, refusal) in [("threads", "engine tc forwards for eth1"), ("xdp", "by engine tc for eth")] {
        let mut other = lab.begin_takeover(engine);
        assert!(eventually(|| !other.is_running()), "{}", other.output());
        let output = other.output();
        assert!(output.contains(refusal) && output.contains("end it, and start this one"), "{output}");
    }
    let later = ask(&mut connect(&socket(&lab.control)), &begin(9999));
    let expected = format!("exchange {PROTOCOL}, and the new version");
    assert!(later["error"].to_string().contains(&expected), "{later}");
    let early = ask(&mut connect(&socket(&lab.control)), "\"taken-over\"");
    assert!(early["error"].to_string().contains("ask for that first"), "{early}");
    assert!(program.is_running());
    let (_, lost, twice) = lab.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

#[test]
fn only_root_and_the_routers_user_take_its_place() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let program = lab.start();
    let path = socket(&lab.control);
    let folder = path.parent().unwrap();
    lab.lab.router.command(&format!("chmod 777 {} {}", folder.display(), path.display()));
    let arguments = ["--reuid", "65534", "--clear-groups", env!("CARGO_BIN_EXE_fullview"), "forward"];
    let more = ["--takeover", "--interfaces", "eth1,eth2", "--control", path.to_str().unwrap()];
    let mut other = lab.lab.router.start("setpriv", &[&arguments[..], &more].concat());
    assert!(eventually(|| !other.is_running()), "{}", other.output());
    assert!(other.output().contains("only root and the router's own user"), "{}", other.output());
    assert!(!program.output().contains("goes on"), "{}", program.output());
    lab.end();
}

#[test]
fn without_a_running_router_it_just_starts() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let mut program = lab.begin_takeover("tc");
    program.wait_for("nothing is taken over");
    program.wait_for("forwarding");
    lab.control.ask("\"interfaces\"");
    let mut nameless = lab
        .lab
        .router
        .start(env!("CARGO_BIN_EXE_fullview"), &["forward", "--interfaces", "eth1,eth2", "--takeover"]);
    assert!(eventually(|| !nameless.is_running()));
    assert!(nameless.output().contains("--takeover needs the socket"), "{}", nameless.output());
    lab.end();
}

#[test]
fn the_service_manager_learns_which_process_is_the_main_one() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(ANSWER)).unwrap();
    let message = || {
        let (mut bytes, mut len) = ([0; 100], 0);
        assert!(eventually(|| {
            // A signal may interrupt the call.
            len = manager.recv(&mut bytes).unwrap_or(0);
            len > 0
        }));
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let socket = format!("NOTIFY_SOCKET={}", path.display());
    let router = [socket.as_str(), env!("CARGO_BIN_EXE_fullview"), "forward", "--interfaces", "eth1,eth2"];
    let arguments = [&router[..], &lab.control.options(), &["--takeover"]].concat();
    let _first = lab.lab.router.start("env", &arguments);
    assert_eq!(message(), "READY=1");
    let second = lab.lab.router.start("env", &arguments);
    assert_eq!(message(), format!("MAINPID={}", second.id()));
    assert_eq!(message(), "READY=1");
    lab.end();
}

#[test]
fn sockets_that_the_new_process_does_not_use_are_removed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics");
    let options = [&lab.control.options()[..], &["--metrics", metrics.to_str().unwrap()]].concat();
    let mut program = lab.lab.forward(&options);
    assert!(metrics.exists());
    let next = lab.take_over();
    assert!(eventually(|| !program.is_running() && !metrics.exists()), "{}", next.output());
    lab.control.ask("\"interfaces\"");
    lab.end();
}

#[test]
fn the_fence_of_a_filter_stays_while_the_process_changes() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let blocked = lab.lab.right.udp("10.0.2.2:9");
    let program = lab.start();
    let sender = Sender::start(lab.lab.left.udp("10.0.1.2:0"), |_| Ipv4Addr::new(10, 0, 2, 2));
    let receiver = Receiver::start(blocked);
    let mut next = lab.take_over();
    next.wait_for("states of its filter go on");
    let mut program = program;
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    thread::sleep(Duration::from_millis(300));
    assert!(sender.end() > 100 && receiver.end().is_empty(), "a packet passed the rules");
    assert!(lab.has_fence());
    let (code, output) = next.end("TERM");
    assert_eq!(code, Some(0), "{output}");
    assert!(!lab.has_fence());
}
