//! Packets of known flows are forwarded by a program in the kernel, as the worker would forward them, and not a moment longer
//! than the worker would.

use std::net::UdpSocket;
use std::time::Duration;

use fullview_testnet::{Node, Program, eventually, may_run};
use serde_json::Value;

use crate::control::ask_by_program;
use crate::datagrams::{passes, send};
use crate::kernel_filter::{FilterLab, IPFW, PF, is_blocked};

const PROGRAMS: [&str; 3] = ["ip", "setpriv", "nft"];

/// As in `PF` of the filter's tests, without a state.
const STATELESS: &str = "block all
pass in on eth1 inet proto udp to port 4000 no state
pass out on eth2 inet proto udp to port 4000 no state
";

/// A router with rules, whose neighbours never have to be resolved.
pub struct FlowLab {
    pub lab: FilterLab,
    pub program: Program,
}

impl FlowLab {
    pub fn new(language: &str, rules: &str, port: &str, flows: u16) -> FlowLab {
        let lab = FilterLab::new(language, rules);
        if port == "xdp" {
            lab.lab.keep_tags();
            // A veth device takes redirected frames if its peer handles received frames in a poll of its own.
            [&lab.lab.left, &lab.lab.right]
                .iter()
                .for_each(|host| _ = host.command("ethtool -K eth0 gro on"));
        }
        for (host, device, address) in
            [(&lab.lab.left, "eth1", "10.0.1.2"), (&lab.lab.right, "eth2", "10.0.2.2")]
        {
            lab.lab.router.ip(&neighbor(address, &mac(host), device));
        }
        let file = lab.folder.path().join("router.toml");
        let (rules, socket) = (lab.rules(), lab.control.options()[1].to_owned());
        let text = format!(
            "[router]\ninterfaces = [\"eth1\", \"eth2\"]\nport = \"{port}\"\n[filter]\nlanguage = \"{language}\"\n\
             file = \"{}\"\nkernel-flows = {flows}\n[control]\nsocket = \"{socket}\"\n",
            rules.display()
        );
        std::fs::write(&file, text).unwrap();
        let arguments = ["forward", "--config", file.to_str().unwrap()];
        let mut program = lab.lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
        program.wait_for("forwarding");
        program.wait_for("control: ");
        FlowLab { lab, program }
    }

    pub fn ask(&self, question: &str) -> String {
        ask_by_program(self.lab.control.options()[1].as_ref(), question).1
    }

    fn reload(&self, rules: &str) {
        self.lab.write(rules);
        let (success, said) = ask_by_program(self.lab.control.options()[1].as_ref(), "reload");
        assert!(success, "{said}");
    }

    pub fn filter(&self) -> Value {
        serde_json::from_str(&self.ask("show filter --json")).unwrap()
    }

    /// Sends once; returns whether this datagram passes, even if the worker has to wait for its processor: it answers after it has
    /// judged what came before the question.
    fn passes(&self, from: &UdpSocket, to: &UdpSocket) -> bool {
        let sent = send(from, to);
        sent.arrives() || {
            self.filter();
            sent.arrives()
        }
    }

    /// How many packets the program in the kernel has forwarded.
    pub fn in_kernel(&self) -> u64 {
        self.filter()["kernel-flows"]["packets"].as_u64().unwrap_or(0)
    }

    /// What the rules have counted, and the states without their times.
    fn counted(&self) -> (Value, Vec<Value>) {
        let states = self.ask("show states --json");
        let mut states: Vec<Value> = states.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for state in &mut states {
            let keys = state.as_object_mut().unwrap();
            keys.retain(|key, _| !key.contains("age") && !key.contains("expires"));
        }
        (self.filter()["rules"].clone(), states)
    }
}

fn mac(host: &Node) -> String {
    let said = host.command("ip -br link show eth0");
    said.split_whitespace().nth(2).unwrap().to_owned()
}

fn neighbor(address: &str, mac: &str, device: &str) -> String {
    format!("neigh replace {address} lladdr {mac} dev {device} nud permanent")
}

/// A socket for tests that ask the router whether it is time to give up.
fn impatient(socket: UdpSocket) -> UdpSocket {
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    socket
}

/// Which of these packets passed, and what was counted at the end.
fn tell(lab: &FlowLab) -> (Vec<bool>, (Value, Vec<Value>)) {
    let [left, second, allowed, other] =
        [lab.lab.left(5000), lab.lab.left(5001), lab.lab.right(4000), lab.lab.right(4001)].map(impatient);
    let passes = |from, to| lab.passes(from, to);
    let mut told = Vec::new();
    told.extend((0..30).map(|_| passes(&left, &allowed)));
    told.extend((0..10).map(|_| passes(&allowed, &left)));
    told.extend((0..20).flat_map(|_| [passes(&second, &allowed), passes(&left, &allowed)]));
    told.extend([passes(&left, &other), passes(&other, &left)]);
    lab.ask("filter kill 10.0.1.2:5000");
    told.extend((0..10).map(|_| passes(&left, &allowed)));
    lab.reload(&std::fs::read_to_string(lab.lab.rules()).unwrap().replace("4080", "4001"));
    told.extend(
        (0..10).flat_map(|_| [passes(&left, &allowed), passes(&second, &allowed), passes(&left, &other)]),
    );
    (told, lab.counted())
}

fn flows_in_the_kernel_change_nothing(language: &str, rules: &str, port: &str) {
    let by_worker = FlowLab::new(language, rules, port, 0);
    let expected = tell(&by_worker);
    assert!(by_worker.filter()["kernel-flows"].is_null());
    by_worker.program.end("TERM");
    let lab = FlowLab::new(language, rules, port, 100);
    let (told, mut counted) = tell(&lab);
    assert_eq!(told, expected.0, "{language}");
    let is_same = eventually(|| {
        counted = lab.counted();
        counted == expected.1
    });
    assert!(is_same, "{language}: {counted:#?} instead of {:#?}", expected.1);
    assert!(lab.in_kernel() > 50, "{language}: {}", lab.filter());
    assert!(lab.ask("show interfaces").contains("forwards known flows"), "{}", lab.ask("show interfaces"));
    let (code, output) = lab.program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn flows_that_the_kernel_forwards_have_the_same_states_and_counters() {
    if may_run(&PROGRAMS) {
        flows_in_the_kernel_change_nothing("pf", PF, "packet");
        flows_in_the_kernel_change_nothing("ipfw", IPFW, "packet");
        flows_in_the_kernel_change_nothing("pf", STATELESS, "packet");
    }
}

#[test]
fn a_flow_ends_with_its_states_routes_and_neighbours() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FlowLab::new("pf", PF, "packet", 100);
    let (left, allowed) = (lab.lab.left(5000), lab.lab.right(4000));
    let in_use = |before: u64| {
        assert!(eventually(|| passes(&left, &allowed)), "{}", lab.ask("show counters"));
        (0..10).for_each(|_| assert!(passes(&left, &allowed)));
        assert!(eventually(|| lab.in_kernel() > before), "{}", lab.filter());
        lab.in_kernel()
    };
    let mut forwarded = in_use(0);
    let router = &lab.lab.lab.router;
    let changes = [
        ("route add blackhole 10.0.2.2/32".to_owned(), "route del blackhole 10.0.2.2/32".to_owned()),
        (
            neighbor("10.0.2.2", "02:00:00:00:00:99", "eth2"),
            neighbor("10.0.2.2", &mac(&lab.lab.lab.right), "eth2"),
        ),
    ];
    for (change, back) in &changes {
        router.ip(change);
        assert!(eventually(|| !passes(&left, &allowed)) && is_blocked(&left, &allowed), "{change}");
        router.ip(back);
        forwarded = in_use(forwarded);
    }
    lab.reload("block all\n");
    assert!(passes(&left, &allowed), "its states stay");
    lab.ask("filter kill --all");
    assert!(is_blocked(&left, &allowed), "the states are gone");
    lab.reload(PF);
    in_use(forwarded);
    let (code, output) = lab.program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

/// With a full table some route changes all the time, and with many hosts some neighbour.
#[test]
fn other_routes_and_neighbours_may_change_while_the_kernel_forwards_a_flow() {
    const CHANGES: u64 = 20;
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FlowLab::new("pf", PF, "packet", 100);
    let (left, allowed) = (lab.lab.left(5000), lab.lab.right(4000));
    (0..10).for_each(|_| assert!(passes(&left, &allowed)));
    assert!(eventually(|| lab.in_kernel() > 0), "{}", lab.filter());
    // Counts are taken a few times a second.
    std::thread::sleep(Duration::from_millis(300));
    let before = lab.in_kernel();
    for change in 0..CHANGES {
        let host = format!("10.0.2.{}", 100 + change);
        lab.lab.lab.router.ip(&format!("route add 172.16.{change}.0/24 via 10.0.2.2"));
        lab.lab.lab.router.ip(&neighbor(&host, "02:00:00:00:00:99", "eth2"));
        assert!(eventually(|| lab.ask(&format!("show routes 172.16.{change}.1")).contains("10.0.2.2")));
        assert!(eventually(|| lab.ask("show neighbors").contains(&host)));
        assert!(passes(&left, &allowed));
    }
    assert!(eventually(|| lab.in_kernel() >= before + CHANGES), "{before}, {}", lab.filter());
}

#[test]
fn the_kernel_forwards_no_flow_of_a_router_that_hangs_or_was_killed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FlowLab::new("pf", PF, "packet", 100);
    let (left, allowed) = (lab.lab.left(5000), lab.lab.right(4000));
    let in_use = || {
        assert!(eventually(|| passes(&left, &allowed)));
        (0..10).for_each(|_| assert!(passes(&left, &allowed)));
    };
    in_use();
    assert!(eventually(|| lab.in_kernel() > 0), "{}", lab.filter());
    lab.program.signal("STOP");
    std::thread::sleep(Duration::from_millis(1100));
    assert!(is_blocked(&left, &allowed), "past a router that hangs");
    lab.program.signal("CONT");
    in_use();
    lab.program.end("KILL");
    assert!(is_blocked(&left, &allowed), "past a router that was killed");
}

#[test]
fn a_program_in_the_driver_forwards_known_flows_too() {
    if may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        flows_in_the_kernel_change_nothing("pf", PF, "xdp");
    }
}
