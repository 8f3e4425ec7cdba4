//! One interface comes, goes or changes while packets flow between two others: their programs, or their ports and threads, stay
//! and forward.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use fullview_testnet::{Program, eventually, may_run};

use crate::handover::{FlowLab, PROGRAMS};
use crate::lab::forward;

/// The numbers of the link and of the program on an interface.
type OnInterface = [u32; 2];

/// What a router has on interfaces, by their indices.
pub fn links(program: &Program) -> BTreeMap<u32, OnInterface> {
    let files = fs::read_dir(format!("/proc/{}/fdinfo", program.id())).unwrap().flatten();
    // The router closes files meanwhile.
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.filter_map(|text| Some((number(&text, "ifindex")?, link(&text)?))).collect()
}

fn link(text: &str) -> Option<OnInterface> {
    Some([number(text, "link_id")?, number(text, "prog_id")?])
}

fn number(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t")?.parse().ok())
}

/// Starts a router between eth1 and eth2, which has a third interface when that is there.
fn start(flow: &FlowLab, options: &[&str]) -> Program {
    let options = [&flow.control.options()[..], &["--wait"], options].concat();
    let program = forward(&flow.lab.router, "eth1,eth2,eth3", &options);
    flow.wait_until_forwarded();
    program
}

/// A router between eth1 and eth2, whose third interface changes.
struct ChangeLab {
    flow: FlowLab,
    program: Program,
    /// The links at eth1 and eth2.
    stay: BTreeMap<u32, OnInterface>,
    forwarded: u64,
}

impl ChangeLab {
    fn new(engine: &'static str) -> ChangeLab {
        let flow = FlowLab::new(engine);
        let program = start(&flow, &["--engine", engine]);
        let stay = links(&program);
        assert_eq!(stay.len(), 2, "{stay:?}");
        ChangeLab { flow, program, stay, forwarded: 0 }
    }

    fn ip(&self, arguments: &str) {
        self.flow.lab.router.ip(arguments);
    }

    /// Adds the third interface with this index.
    fn add(&mut self, index: u32) {
        self.ip(&format!("link add eth3 index {index} type veth peer name eth4"));
        self.flow.lab.router.keep_tags("eth3");
        ["eth3", "eth4"].iter().for_each(|name| self.ip(&format!("link set {name} up")));
        self.has_program_at(&[index]);
    }

    /// Waits until the router has programs at these interfaces besides eth1 and eth2. Eth1 and eth2 must still have the
    /// programs that they had at the start, and these must have forwarded more packets.
    fn has_program_at(&mut self, others: &[u32]) {
        let is_there =
            || links(&self.program).keys().filter(|index| !self.stay.contains_key(*index)).eq(others);
        assert!(eventually(is_there), "{others:?}: {}", self.program.output());
        let now = links(&self.program);
        assert!(
            self.stay.iter().all(|(index, link)| now.get(index) == Some(link)),
            "{:?} {now:?}",
            self.stay
        );
        self.flow.wait_for_packets();
        let forwarded = self.flow.control.ask("\"counters\"")["program"]["forwarded"].as_u64().unwrap();
        assert!(forwarded > self.forwarded, "{forwarded}, {} before", self.forwarded);
        self.forwarded = forwarded;
    }
}

/// It is added, removed, made again with another index and with the same one, and becomes a part of a bridge.
fn programs_at_other_interfaces_stay(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = ChangeLab::new(engine);
    let (left, by_kernel) = (lab.flow.left_to_kernel(), lab.flow.forwarded_by_kernel());
    lab.add(101);
    lab.ip("link del eth3");
    lab.has_program_at(&[]);
    lab.add(102);
    let first = links(&lab.program)[&102];
    lab.ip("link del eth3");
    lab.add(102);
    assert!(eventually(|| links(&lab.program).get(&102).is_some_and(|link| *link != first)));
    lab.ip("link add bridge type bridge");
    lab.ip("link set eth3 master bridge");
    lab.has_program_at(&[]);
    lab.ip("link set eth3 nomaster");
    lab.has_program_at(&[102]);
    let by_kernel = lab.flow.forwarded_by_kernel() - by_kernel;
    let left = lab.flow.left_to_kernel() - left;
    assert!(by_kernel <= left, "{by_kernel} packets met no program, or were among {left}");
    let (_, lost, twice) = lab.flow.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

/// The program has room for the tables that interfaces used when it was loaded.
fn a_program_with_more_room_takes_the_place_of_the_running_one(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = ChangeLab::new(engine);
    let (left, by_kernel) = (lab.flow.left_to_kernel(), lab.flow.forwarded_by_kernel());
    lab.add(101);
    let third = links(&lab.program)[&101];
    lab.ip("route add 198.51.100.0/24 via 10.0.2.2 table 100");
    lab.ip("rule add iif eth3 lookup 100");
    lab.program.wait_for("the program is loaded again: besides the main table it has room for 1, not 0");
    lab.stay.insert(101, third);
    // The answer comes after the program of before has ended.
    lab.flow.control.ask("\"counters\"");
    let before = std::mem::replace(&mut lab.stay, links(&lab.program));
    let is_other = |(index, [link, program]): (&u32, &OnInterface)| {
        before.get(index).is_some_and(|[before, other]| link == before && program != other)
    };
    assert!(lab.stay.len() == 3 && lab.stay.iter().all(is_other), "{before:?} {:?}", lab.stay);
    lab.has_program_at(&[]);
    let by_kernel = lab.flow.forwarded_by_kernel() - by_kernel;
    let left = lab.flow.left_to_kernel() - left;
    assert!(by_kernel <= left, "{by_kernel} packets met no program, or were among {left}");
    let (_, lost, twice) = lab.flow.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

with_each_program!(
    programs_at_other_interfaces_stay,
    a_program_with_more_room_takes_the_place_of_the_running_one,
);

/// Behind the driver, no program can see the tags that are stripped.
#[test]
fn programs_at_other_interfaces_stay_when_one_strips_tags() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = ChangeLab::new("xdp-generic");
    lab.add(101);
    lab.flow.lab.router.command("ethtool -K eth3 rxvlan on");
    lab.has_program_at(&[]);
    lab.flow.lab.router.keep_tags("eth3");
    lab.has_program_at(&[101]);
    let (_, lost, twice) = lab.flow.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

/// How often the third interface comes and goes while threads forward.
const ROUNDS: usize = 5;

/// More changes than the router takes in within a turn of some milliseconds, between two looks at its interfaces.
#[cfg(feature = "bpf")]
const MANY: u32 = 20_000;

/// The threads of a router that forward.
fn workers(program: &Program) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", program.id())).unwrap().flatten();
    let is_worker = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "worker")
    };
    threads.filter(is_worker).map(|task| task.file_name().into_string().unwrap()).collect()
}

/// The sockets of a router, by their numbers.
fn sockets(program: &Program) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{}/fd", program.id())).unwrap().flatten();
    // The router closes files meanwhile.
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let names = targets.map(|target| target.display().to_string());
    names.filter(|name| name.starts_with("socket:")).collect()
}

/// Has another interface take the place of the third one.
const REPLACE: &str =
    "link del eth3\nlink add eth3 type veth peer name eth4\nlink set eth3 up\nlink set eth4 up\n";

/// The same threads get another port, and keep the others, while a packet is sent each millisecond.
fn threads_and_other_ports_stay(options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let replace = folder.path().join("replace");
    fs::write(&replace, REPLACE).unwrap();
    let mut flow = FlowLab::new("threads");
    let program = start(&flow, options);
    let router = &flow.lab.router;
    let has_threads = |third: bool| {
        let engine = if third { "threads" } else { "none" };
        flow.control.wait_until("\"interfaces\"", |of| of[2]["engine"]["name"] == engine);
        flow.wait_for_packets();
    };
    has_threads(false);
    // Those of clients of the control socket come and go.
    let samples = (0..5).map(|_| {
        sleep(Duration::from_millis(50));
        sockets(&program)
    });
    let (threads, ports) = (workers(&program), samples.reduce(|one, other| &one & &other).unwrap());
    assert!(!threads.is_empty());
    let began = flow.sent();
    for _ in 0..ROUNDS {
        router.ip("link add eth3 type veth peer name eth4");
        ["eth3", "eth4"].iter().for_each(|name| _ = router.ip(&format!("link set {name} up")));
        has_threads(true);
        assert!(sockets(&program).is_superset(&ports), "{options:?}");
        // Most often the router learns of all at once.
        router.ip(&format!("-batch {}", replace.display()));
        has_threads(true);
        router.ip("link del eth3");
        has_threads(false);
        assert_eq!(workers(&program), threads, "{options:?}");
    }
    assert!(eventually(|| sockets(&program) == ports), "{options:?}: {ports:?}, {:?}", sockets(&program));
    let (_, mut lost, twice) = flow.end();
    // A router with a filter keeps the kernel from forwarding before it forwards itself.
    lost.retain(|number| *number >= began);
    assert_eq!((lost, twice), (vec![], vec![]), "{options:?}");
}

#[test]
fn threads_and_their_other_ports_stay_when_an_interface_comes_or_goes() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    fs::write(&rules, "pass all\n").unwrap();
    threads_and_other_ports_stay(&["--engine", "threads"]);
    threads_and_other_ports_stay(&["--engine", "threads", "--port", "packet", "--workers", "2"]);
    threads_and_other_ports_stay(&["--filter-language", "pf", "--filter", rules.to_str().unwrap()]);
}

/// Ports are opened by name. One on an interface that has meanwhile taken the name would keep that interface's own port away.
#[cfg(feature = "bpf")]
#[test]
fn an_interface_that_has_taken_the_name_of_another_gets_its_own_kind_of_port() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let routes = folder.path().join("routes");
    let lines = (0..MANY).map(|n| format!("route add blackhole 40.{}.{}.0/24\n", n >> 8, n & 0xff));
    fs::write(&routes, lines.collect::<String>()).unwrap();
    let flow = FlowLab::new("threads");
    flow.lab.behave_as_wires();
    let program = start(&flow, &["--engine", "threads", "--port", "auto"]);
    let router = &flow.lab.router;
    let add = |name: &str, peer: &str| {
        router.ip(&format!("link add {name} type veth peer name {peer}"));
        router.keep_tags(name);
        [name, peer].iter().for_each(|name| _ = router.ip(&format!("link set {name} up")));
    };
    program.signal("STOP");
    add("eth3", "eth4");
    router.ip(&format!("-batch {}", routes.display()));
    add("eth5", "eth6");
    router.ip("link del eth3");
    router.ip("link set eth5 name eth3");
    program.signal("CONT");
    let mac = router.mac("eth3");
    flow.control.wait_until("\"interfaces\"", |of| {
        of[2]["mac"] == mac.as_str() && of[2]["engine"]["name"] == "threads"
    });
    assert!(!program.output().contains("packet sockets"), "{}", program.output());
}
