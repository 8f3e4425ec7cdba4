//! The agent on a node, asked directly.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use fullview_testnet::{Node, cable, eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(node: &Node) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
        command.arg("testbed-agent").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.run(move || command.spawn().unwrap());
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Agent { child, input, output }
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Starts a device with rules, which is behind a fence.
    fn start_filtered(&mut self) {
        let mut rules = tempfile::NamedTempFile::new().unwrap();
        writeln!(rules, "pass all").unwrap();
        assert_eq!(self.ask(&filtered_device(rules.path())), "done");
    }

    /// Ends its input, and waits until it has put everything back.
    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// A device under test with two wires.
struct Dut {
    node: Node,
    _station: Node,
}

impl Dut {
    fn new() -> Dut {
        let (node, station) = (Node::new(), Node::new());
        cable((&node, "eth2"), (&station, "eth2"));
        cable((&node, "eth3"), (&station, "eth3"));
        node.ip("address add 198.19.0.1/24 dev eth2");
        node.ip("address add 192.0.2.1/24 dev eth3");
        Dut { node, _station: station }
    }

    fn has_fence(&self) -> bool {
        self.node.command("nft list tables").contains("fullview_fence")
    }

    fn ip(&self, lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| self.node.ip(line)).collect()
    }
}

fn links() -> Value {
    json!({ "links": {
        "egress": "eth2",
        "spare": "eth3",
        "stations": [["198.19.0.2", "02:00:00:00:00:02"]],
        "spare_station": "192.0.2.2",
    }})
}

#[test]
fn routes_by_next_hop_objects_come_back_with_the_link() {
    if !may_run(&["ip"]) {
        return;
    }
    let dut = Dut::new();
    dut.ip(&[
        "-6 address add 2001:db8:7::1/64 dev eth2 nodad",
        "nexthop add id 5 via 198.19.0.9 dev eth2 proto static",
        "nexthop add id 6 via 192.0.2.9 dev eth3",
        "nexthop add id 7 via 198.19.0.8 dev eth2",
        "nexthop add id 8 via 2001:db8:7::9 dev eth2",
        "nexthop add id 10 group 5,2/6",
        "nexthop add id 11 group 5/7",
        "route add 100.64.1.0/24 nhid 5 proto static metric 20",
        "route add 100.64.2.0/24 nhid 10",
        "route add 100.64.3.0/24 nhid 11 table 77",
        "route add 100.64.4.0/24 via 198.19.0.9 dev eth2",
        "-6 route add 2001:db8:8::/48 nhid 8",
    ]);
    let shown =
        || dut.ip(&["nexthop show", "-4 route show table all", "-6 route show to root 2001:db8::/32"]);
    let before = shown();
    let mut agent = Agent::start(&dut.node);
    assert_eq!(agent.ask(&links()), "done");
    for failure in ["link", "multipath-link"] {
        assert_eq!(agent.ask(&json!("repair")), "done");
        assert!(agent.ask(&json!({ "fail": failure }))["moment"].is_u64());
        let left = shown();
        assert!(!left[0].contains("dev eth2") && !left[1].contains("100.64.1.0/24"), "{left:?}");
    }
    agent.end();
    // The kernel says for a moment that the link is down.
    assert!(eventually(|| shown() == before), "{:#?} instead of {before:#?}", shown());
}

#[test]
fn links_that_failed_leave_the_neighbours_that_were_there_and_an_interface_down_that_was() {
    if !may_run(&["ip"]) {
        return;
    }
    let dut = Dut::new();
    let shown =
        || (dut.node.ip("neighbor show nud permanent"), dut.node.ip("-o link show dev eth2").contains(",UP"));
    let foreign = "neighbor replace 198.19.0.2 lladdr 02:00:00:00:00:99 dev eth2 nud permanent";
    dut.node.ip("neighbor add 198.19.0.9 lladdr 02:00:00:00:00:09 dev eth2");
    let mut agent = Agent::start(&dut.node);
    for before in ["link set eth2 up", foreign, "link set eth2 down"] {
        dut.node.ip(before);
        let before = shown();
        assert_eq!(agent.ask(&links()), "done");
        assert!(dut.node.ip("neighbor show nud permanent").contains("02:00:00:00:00:02"));
        assert_eq!(agent.ask(&json!("repair")), "done");
        assert!(agent.ask(&json!({ "fail": "link" }))["moment"].is_u64());
        assert_eq!(agent.ask(&json!("stop_device")), "done");
        assert_eq!(shown(), before);
    }
    agent.end();
}

#[test]
fn an_agent_that_a_signal_ends_puts_everything_back() {
    if !may_run(&["ip"]) {
        return;
    }
    let dut = Dut::new();
    let forwarding = || dut.node.command("cat /proc/sys/net/ipv4/conf/eth2/forwarding");
    dut.node.sysctl("ipv4/conf/eth2/forwarding", "1");
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut agent = Agent::start(&dut.node);
        assert_eq!(agent.ask(&host()), "done");
        assert_eq!(forwarding(), "0\n");
        kill(agent.child.id(), signal);
        assert!(agent.child.wait().unwrap().success(), "{signal:?}");
        assert_eq!(forwarding(), "1\n", "{signal:?}");
    }
}

#[test]
fn an_interface_that_was_down_keeps_its_addresses_of_ipv6() {
    if !may_run(&["ip"]) {
        return;
    }
    let dut = Dut::new();
    dut.ip(&["link set eth2 down", "-6 address add 2001:db8:7::1/64 dev eth2 nodad"]);
    let mut agent = Agent::start(&dut.node);
    assert_eq!(agent.ask(&host()), "done");
    assert!(dut.node.ip("-o link show dev eth2").contains(",UP"));
    agent.end();
    assert!(!dut.node.ip("-o link show dev eth2").contains(",UP"));
    assert!(dut.node.ip("-6 address show dev eth2").contains("2001:db8:7::1/64"));
    assert_eq!(dut.node.command("cat /proc/sys/net/ipv6/conf/eth2/keep_addr_on_down"), "0\n");
}

/// A router removes its fence when it ends in order; the fence of one that is killed stays.
#[test]
fn the_fence_of_a_filtered_device_ends_with_the_device() {
    if !may_run(&["ip", "nft", "setpriv"]) {
        return;
    }
    let dut = Dut::new();
    let mut agent = Agent::start(&dut.node);
    for ends_in_order in [true, false] {
        agent.start_filtered();
        assert!(dut.has_fence());
        if !ends_in_order {
            kill(router_of(&agent.child), Signal::KILL);
        }
        assert_eq!(agent.ask(&json!("stop_device")), "done");
        assert!(!dut.has_fence(), "ends in order: {ends_in_order}");
    }
    agent.end();
}

#[test]
fn the_fence_of_a_killed_agent_is_removed_by_the_next_one() {
    if !may_run(&["ip", "nft", "setpriv"]) {
        return;
    }
    let dut = Dut::new();
    let clean = |dry_run: bool| {
        let mut agent = Agent::start(&dut.node);
        let interfaces = ["eth2", "eth3"];
        let found = agent.ask(&json!({ "clean": { "interfaces": interfaces, "dry_run": dry_run } }));
        agent.end();
        found["put_back"].as_array().unwrap_or_else(|| panic!("{found}")).clone()
    };
    let mut agent = Agent::start(&dut.node);
    agent.start_filtered();
    kill(agent.child.id(), Signal::KILL);
    agent.child.wait().unwrap();
    for dry_run in [true, false] {
        let found = clean(dry_run);
        assert!(found.contains(&json!("nft delete table inet fullview_fence")), "{found:?}");
        assert_eq!(dut.has_fence(), dry_run);
    }
    assert!(clean(false).is_empty());
}

fn filtered_device(rules: &Path) -> Value {
    let port = |interface: &str, net: &str| json!({ "interface": interface, "net": net, "neighbor": null });
    json!({ "device": {
        "kind": "fullview",
        "engine": "threads",
        "options": ["--filter", rules],
        "ports": [port("eth2", "198.19.0.1/24"), port("eth3", "192.0.2.1/24")],
    }})
}

/// The program that an agent started.
fn router_of(agent: &Child) -> u32 {
    let tasks = format!("/proc/{}/task", agent.id());
    let tasks = fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path().join("children"));
    let children: String = tasks.map(|children| fs::read_to_string(children).unwrap()).collect();
    children.trim().parse().unwrap()
}

fn kill(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process.cast_signed()).unwrap(), signal).unwrap();
}

fn host() -> Value {
    json!({ "host": { "interfaces": ["eth2"], "is_inet6": false } })
}
