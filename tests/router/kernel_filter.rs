//! A router beside a kernel that filters what it forwards. Whatever happens to the router, the kernel forwards nothing past its
//! rules.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
#[cfg(feature = "bpf")]
use std::{thread::sleep, time::Duration};

use fullview_router::fence::{Fence, FencedPort};
use fullview_testnet::{ANSWER, Program, eventually, may_run};

use crate::control::{Control, ask_by_program};
use crate::datagrams::{passes, socket};
use crate::lab::{Lab, forward};

const PROGRAMS: [&str; 3] = ["ip", "setpriv", "nft"];

/// The left host may send to ports 4000 and 4080 of the right one, and gets the answers; nothing else passes.
pub const PF: &str = "block all
pass in on eth1 inet proto { tcp udp } to port { 4000 4080 } keep state
pass out on eth2 inet proto { tcp udp } to port { 4000 4080 } keep state
";

pub const IPFW: &str = "add check-state
add allow tcp from any to any 4000,4080 in recv eth1 setup keep-state
add allow udp from any to any 4000,4080 in recv eth1 keep-state
add deny ip from any to any
";

/// Two hosts, the router between them, and a file of rules.
pub struct FilterLab {
    pub lab: Lab,
    pub folder: tempfile::TempDir,
    pub control: Control,
    /// Options of `forward`, besides the rules.
    options: Vec<String>,
}

impl FilterLab {
    pub fn new(language: &str, rules: &str) -> FilterLab {
        let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
        // Packets that senders leave to a card to cut would be too long for the router.
        [&lab.left, &lab.right].iter().for_each(|host| host.send_finished_frames("eth0"));
        let options = ["--filter-language", language].map(str::to_owned).to_vec();
        let lab = FilterLab { lab, folder, control: Control::new(), options };
        lab.write(rules);
        lab
    }

    /// Has routers forward with so many workers.
    pub fn use_workers(&mut self, workers: usize) {
        self.options.retain(|option| !option.starts_with("--workers"));
        self.options.push(format!("--workers={workers}"));
    }

    /// Has routers use ports of this kind.
    #[cfg(feature = "bpf")]
    pub fn use_port(&mut self, kind: &str) {
        self.options.push(format!("--port={kind}"));
    }

    /// Has routers begin also if interfaces are not there.
    pub fn wait_for_interfaces(&mut self) {
        self.options.push("--wait".to_owned());
    }

    pub fn rules(&self) -> PathBuf {
        self.folder.path().join("rules")
    }

    pub fn write(&self, rules: &str) {
        std::fs::write(self.rules(), rules).unwrap();
    }

    pub fn start(&self) -> Program {
        self.start_between("eth1,eth2")
    }

    /// Starts a router that takes the running one's place.
    #[cfg(feature = "bpf")]
    pub fn take_over(&self) -> Program {
        self.take_over_between("eth1,eth2")
    }

    #[cfg(feature = "bpf")]
    pub fn take_over_between(&self, interfaces: &str) -> Program {
        let rules = self.rules();
        let more = ["--takeover", "--filter", rules.to_str().unwrap()];
        let options = self.options.iter().map(String::as_str);
        let options: Vec<&str> = options.chain(self.control.options()).chain(more).collect();
        forward(&self.lab.router, interfaces, &options)
    }

    fn start_between(&self, interfaces: &str) -> Program {
        let rules = self.rules();
        let more = [&self.control.options()[..], &["--filter", rules.to_str().unwrap()]].concat();
        let options: Vec<&str> = self.options.iter().map(String::as_str).chain(more).collect();
        forward(&self.lab.router, interfaces, &options)
    }

    pub fn left(&self, port: u16) -> UdpSocket {
        socket(&self.lab.left, &format!("10.0.1.2:{port}"))
    }

    pub fn right(&self, port: u16) -> UdpSocket {
        socket(&self.lab.right, &format!("10.0.2.2:{port}"))
    }

    pub fn show(&self, what: &str) -> String {
        self.ask(&format!("show {what}"))
    }

    /// What a command says that asks the router.
    pub fn ask(&self, line: &str) -> String {
        ask_by_program(self.control.options()[1].as_ref(), line).1
    }

    pub fn has_fence(&self) -> bool {
        self.lab.router.command("nft list tables").contains("fullview_fence")
    }
}

/// Whether nothing of several packets passes.
pub fn is_blocked(from: &UdpSocket, to: &UdpSocket) -> bool {
    (0..5).all(|_| !passes(from, to))
}

fn only_allowed_flows_pass(lab: &FilterLab, language: &str) -> String {
    let program = lab.start();
    let (left, allowed, other) = (lab.left(5000), lab.right(4000), lab.right(4001));
    assert!(is_blocked(&allowed, &left), "{language}: nothing passes before the first question");
    assert!(eventually(|| passes(&left, &allowed)), "{language}: {}", lab.show("counters"));
    assert!(eventually(|| passes(&allowed, &left)), "{language}: the answer passes by the state");
    assert!(is_blocked(&left, &other) && is_blocked(&other, &left), "{language}: {}", lab.show("counters"));
    assert!(lab.show("counters").contains("filter_rule"), "{}", lab.show("counters"));
    assert!(lab.show("filter").contains(&format!("{language} rules of")), "{}", lab.show("filter"));
    assert!(lab.show("states").contains("10.0.1.2:5000"), "{}", lab.show("states"));
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
    output
}

#[test]
fn only_flows_that_the_rules_allow_pass() {
    if may_run(&PROGRAMS) {
        for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
            let output = only_allowed_flows_pass(&FilterLab::new(language, rules), language);
            assert!(output.contains("engine threads: `filter` is a setting of threads"), "{output}");
        }
    }
}

/// The route is in the table `local`, so that it changes nothing that workers forward with.
#[test]
#[cfg(feature = "bpf")]
fn packets_to_an_address_that_this_host_gets_meet_no_rules() {
    if !may_run(&["ip", "setpriv", "nft", "ping"]) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let _program = lab.start();
    let (left, allowed) = (lab.left(5000), lab.right(4000));
    let answers =
        |to: &str| lab.lab.left.try_command(&format!("ping -n -c 4 -i 0.2 -W 1 {to}")).status.success();
    assert!(eventually(|| passes(&left, &allowed) && passes(&allowed, &left)), "{}", lab.show("counters"));
    assert!(answers("10.0.1.1"));
    // Until the neighbours are known, which changes what workers forward with.
    sleep(Duration::from_secs(1));
    lab.lab.router.ip("route add local 198.51.100.7/32 dev lo");
    assert!(answers("198.51.100.7"), "{}", lab.show("counters"));
}

#[test]
#[cfg(feature = "bpf")]
fn only_flows_that_the_rules_allow_pass_through_af_xdp() {
    if may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        let mut lab = FilterLab::new("pf", PF);
        lab.lab.keep_tags();
        lab.options.extend(["--port", "xdp"].map(str::to_owned));
        let output = only_allowed_flows_pass(&lab, "pf");
        assert_eq!(output.matches("AF_XDP, copy mode").count(), 2, "{output}");
    }
}

/// Workers start again with other ports, and go on with the states.
#[test]
fn states_stay_when_an_interface_appears() {
    if may_run(&PROGRAMS) {
        (1..=2).for_each(states_of_workers_stay);
    }
}

fn states_of_workers_stay(workers: usize) {
    let mut lab = FilterLab::new("pf", PF);
    lab.use_workers(workers);
    lab.wait_for_interfaces();
    let program = lab.start_between("eth1,eth2,eth3");
    let (left, allowed) = (lab.left(5000), lab.right(4000));
    assert!(eventually(|| passes(&left, &allowed)), "{}", program.output());
    lab.lab.router.ip("link add eth3 type veth peer name eth4");
    ["eth3", "eth4"].iter().for_each(|name| _ = lab.lab.router.ip(&format!("link set {name} up")));
    let is_up = |line: &str| line.split_whitespace().take(2).eq(["eth3", "up"]);
    assert!(eventually(|| lab.show("interfaces").lines().any(is_up)), "{}", lab.show("interfaces"));
    // By this answer the workers have started again.
    lab.show("interfaces");
    assert!(eventually(|| passes(&allowed, &left)), "the answer passes by the state: {}", lab.show("states"));
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

/// The kernel may not forward in their place.
#[cfg(feature = "bpf")]
#[test]
fn an_interface_that_cannot_be_a_port_leaves_the_others_filtering() {
    if !may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        return;
    }
    let mut lab = FilterLab::new("pf", PF);
    lab.lab.keep_tags();
    lab.use_port("xdp");
    lab.wait_for_interfaces();
    let program = lab.start_between("eth1,eth2,eth3");
    let (left, allowed) = (lab.left(5000), lab.right(4000));
    assert!(eventually(|| passes(&left, &allowed)), "{}", program.output());
    lab.lab.router.ip("link add eth3 numrxqueues 4 numtxqueues 4 type veth peer name eth4");
    lab.lab.router.keep_tags("eth3");
    ["eth3", "eth4"].iter().for_each(|name| _ = lab.lab.router.ip(&format!("link set {name} up")));
    let says = |words: &str| eventually(|| program.output().contains(words));
    assert!(says("the workers use the other interfaces: --port xdp on eth3"), "{}", program.output());
    assert!(eventually(|| passes(&allowed, &left)), "by the state: {}", lab.show("states"));
    assert!(eventually(|| passes(&left, &allowed)), "{}", lab.show("counters"));
    // A program behind the driver needs as many queues as the peer sends by.
    ["eth4", "eth3"]
        .iter()
        .for_each(|name| _ = lab.lab.router.command(&format!("ethtool -L {name} rx 1 tx 1")));
    assert!(says("interface eth3: AF_XDP"), "{}", program.output());
    assert!(eventually(|| passes(&allowed, &left)), "by the state: {}", lab.show("states"));
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

fn carries_a_connection(language: &str, rules: &str) {
    const BYTES: usize = 300_000;
    let lab = FilterLab::new(language, rules);
    let program = lab.start();
    let listener = lab.lab.right.run(|| TcpListener::bind("10.0.2.2:4080").unwrap());
    let server = std::thread::spawn(move || {
        let mut received = vec![0; BYTES];
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(ANSWER)).unwrap();
        stream.read_exact(&mut received).unwrap();
        stream.write_all(&received).unwrap();
    });
    let connect = || TcpStream::connect_timeout(&"10.0.2.2:4080".parse().unwrap(), ANSWER);
    let mut stream = lab.lab.left.run(connect).unwrap();
    stream.set_read_timeout(Some(ANSWER)).unwrap();
    let sent: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
    stream.write_all(&sent).unwrap();
    let mut answer = vec![0; BYTES];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer == sent, "{language}");
    server.join().unwrap();
    assert!(lab.show("states --protocol tcp").contains("10.0.2.2:4080"), "{}", lab.show("states"));
    program.end("TERM");
}

#[test]
fn a_connection_passes_by_its_states() {
    if may_run(&PROGRAMS) {
        carries_a_connection("pf", PF);
        carries_a_connection("ipfw", IPFW);
    }
}

#[test]
fn the_kernel_forwards_nothing_past_the_rules_of_a_router_that_hangs_or_was_killed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let (left, allowed, other) = (lab.left(5000), lab.right(4000), lab.right(4001));
    if cfg!(feature = "bpf") {
        assert!(eventually(|| passes(&left, &other)), "the kernel forwards before the first start");
    }
    let program = lab.start();
    assert!(program.output().contains("table inet fullview_fence"), "{}", program.output());
    assert!(eventually(|| passes(&left, &allowed)) && is_blocked(&left, &other));
    program.signal("STOP");
    // The kernel gets the frames when the router has been silent for a second.
    (0..3).for_each(|_| assert!(is_blocked(&left, &other), "past a router that hangs"));
    program.signal("CONT");
    assert!(eventually(|| passes(&left, &allowed)), "the router goes on");
    program.end("KILL");
    assert!(lab.has_fence() && is_blocked(&left, &other) && is_blocked(&left, &allowed));
    let program = lab.start();
    assert!(is_blocked(&left, &other), "while a router takes over the fence");
    assert!(eventually(|| passes(&left, &allowed)), "{}", program.output());
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
    assert!(!lab.has_fence());
    if cfg!(feature = "bpf") {
        assert!(eventually(|| passes(&left, &other)), "the kernel forwards again");
    }
}

/// A table that another process may delete would protect nothing.
#[test]
fn no_other_program_removes_the_fence_of_a_running_router() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let program = lab.start();
    let nft = |line: &str| lab.lab.router.try_command(&format!("nft {line}")).status.success();
    assert!(!nft("delete table inet fullview_fence"));
    nft("flush ruleset");
    assert!(lab.has_fence());
    program.end("KILL");
    assert!(lab.has_fence() && nft("delete table inet fullview_fence") && !lab.has_fence());
}

/// Every other router would forward past the rules of the one that was killed, or let the kernel do so.
#[test]
fn a_fence_that_was_left_stops_other_routers() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let (left, other) = (lab.left(5000), lab.right(4001));
    lab.lab.router.ip("link add eth3 type veth peer name eth4");
    lab.start().end("KILL");
    let path = lab.rules();
    let filter = format!("--filter {}", path.display());
    for (interfaces, options, expected) in [
        ("eth1,eth2", "", "table inet fullview_fence, chain eth1 (hook forward), of a router with a filter"),
        (
            "eth3,eth4",
            filter.as_str(),
            "a router with a filter for eth1, eth2 runs in this network namespace",
        ),
        ("eth2,eth3", filter.as_str(), "a router with a filter for eth1 runs"),
    ] {
        let line = format!("{FULLVIEW} forward --interfaces {interfaces} {options}");
        let output = lab.lab.router.try_command(&line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(expected), "{interfaces}: {error}");
        assert!(lab.has_fence() && is_blocked(&left, &other), "{interfaces}");
    }
    // It is not around these.
    let (code, output) = forward(&lab.lab.router, "eth3,eth4", &[]).end("TERM");
    assert_eq!(code, Some(0), "{output}");
    // A router for these interfaces and others takes it over, and its end removes it.
    let (code, output) = lab.start_between("eth1,eth2,eth3").end("TERM");
    assert!(code == Some(0) && !lab.has_fence(), "{output}");
}

#[test]
fn a_fence_has_room_for_every_vlan_whatever_its_name() {
    if !may_run(&["ip", "nft"]) {
        return;
    }
    let lab = Lab::new();
    let port = |vlans: u16| vec![FencedPort::new("eth1", (0..vlans).map(|vlan| format!("customer{vlan}")))];
    let rules = || lab.router.command("nft list table inet fullview_fence").matches(" drop").count();
    let few = port(2);
    // Its socket stays in the namespace in which it was made.
    let mut fence = lab.router.run(move || Fence::raise(few).unwrap());
    assert_eq!(rules(), 3 * 4);
    fence.follow(port(4094)).unwrap();
    assert_eq!(rules(), 3 * 4096);
    fence.remove().unwrap();
    assert!(!lab.router.command("nft list tables").contains("fullview_fence"));
}

#[test]
fn rules_routes_and_interfaces_change_while_the_router_runs() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FilterLab::new("pf", PF);
    lab.options.clear();
    let file = lab.folder.path().join("router.toml");
    let socket = lab.control.options()[1].to_owned();
    let text = format!(
        "[router]\ninterfaces = [\"eth1\", \"eth2\"]\n[filter]\nlanguage = \"pf\"\nfile = \"{}\"\n[control]\nsocket = \"{socket}\"\n",
        lab.rules().display()
    );
    std::fs::write(&file, text).unwrap();
    check_config_knows_vlans(&lab, &file);
    let mut program = lab.lab.router.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
    program.wait_for("forwarding");
    program.wait_for("control: ");
    let (left, allowed, other) = (lab.left(5000), lab.right(4000), lab.right(4001));
    assert!(eventually(|| passes(&left, &allowed)) && is_blocked(&left, &other), "{}", program.output());
    lab.write(&PF.replace("4080", "4001"));
    let reload = || ask_by_program(socket.as_ref(), "reload");
    assert!(reload().0);
    assert!(eventually(|| passes(&left, &other)), "{}", program.output());
    lab.write("pass everything\n");
    let (success, said) = reload();
    assert!(!success && said.contains("rules:1:6"), "{said}");
    // Routes of the kernel lead allowed packets on.
    lab.lab.right.ip("addr add 192.0.2.9/32 dev lo");
    lab.lab.router.ip("route add 192.0.2.9/32 via 10.0.2.2");
    let far = self::socket(&lab.lab.right, "192.0.2.9:4000");
    assert!(eventually(|| passes(&left, &far)), "{}", lab.show("counters"));
    follows_a_new_network(&lab, &reload);
    ["eth1", "eth2"].iter().for_each(|link| _ = lab.lab.router.ip(&format!("link del {link}")));
    program.wait_for("interface eth2 is not there");
    let (success, said) = reload();
    assert!(success && said.contains("is in force, except the rules of the filter"), "{said}");
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

/// Checks nothing where the kernel has no VLANs.
fn check_config_knows_vlans(lab: &FilterLab, file: &Path) {
    let made = lab.lab.router.try_command("ip link add link eth1 name eth1.7 type vlan id 7");
    if !made.status.success() {
        return;
    }
    lab.lab.router.ip("addr add 192.0.2.65/26 dev eth1.7");
    lab.write(&format!("{PF}pass in on eth1.7 from eth1.7:network to any\n"));
    let checked = lab.lab.router.try_command(&format!("{FULLVIEW} check-config {}", file.display()));
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.is_empty(), "{said}");
    lab.lab.router.ip("link del eth1.7");
    lab.write(PF);
}

/// Rules that name the network of an interface apply to the network that it gets later, without a reload.
fn follows_a_new_network(lab: &FilterLab, reload: &impl Fn() -> (bool, String)) {
    let rule = "inet proto udp to (eth2:network) port 4002 keep state";
    lab.write(&format!("{PF}pass in on eth1 {rule}\npass out on eth2 {rule}\n"));
    assert!(reload().0);
    lab.lab.right.ip("addr add 10.0.9.2/24 dev eth0");
    let (left, open) = (lab.left(5001), socket(&lab.lab.right, "10.0.9.2:4002"));
    let closed = socket(&lab.lab.right, "10.0.9.2:4003");
    assert!(is_blocked(&left, &open));
    // What is no longer in the file must not matter: the rules in force are those that were read.
    lab.write("block all\n");
    lab.lab.router.ip("addr add 10.0.9.1/24 dev eth2");
    assert!(eventually(|| passes(&left, &open)), "{} {}", lab.show("counters"), lab.show("filter"));
    assert!(is_blocked(&left, &closed));
}

/// Neighbours come and go all the time, and rules without the address that they need cannot be made each time.
#[test]
fn rules_whose_interface_has_no_address_any_more_are_tried_once() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FilterLab::new("pf", "pass in on eth1 inet from eth1:network to any keep state\n");
    let mut program = lab.start();
    program.wait_for("control: ");
    lab.lab.router.ip("addr del 10.0.1.1/24 dev eth1");
    program.wait_for("the rules do not follow the interfaces");
    for host in 10..30 {
        lab.lab.router.ip(&format!("neigh replace 10.0.1.{host} lladdr 02:00:00:00:00:{host} dev eth1"));
        let is_known = || lab.show("neighbors").contains(&format!("10.0.1.{host} "));
        assert!(eventually(is_known), "{}", lab.show("neighbors"));
    }
    let (code, output) = program.end("TERM");
    let warnings = output.matches("the rules do not follow the interfaces").count();
    assert_eq!((code, warnings), (Some(0), 1), "{output}");
}

/// The kernel answers in the name of the router, and only about packets that passed the rules.
#[test]
#[cfg(feature = "bpf")]
fn icmp_errors_are_about_packets_that_the_rules_pass() {
    if !may_run(&["ip", "setpriv", "nft", "ping"]) {
        return;
    }
    let lab = FilterLab::new("pf", "block all\npass in on eth1 inet proto icmp to 10.0.2.2 keep state\n");
    let program = lab.start();
    let ping = |to: &str| {
        let output = lab.lab.left.try_command(&format!("ping -n -c 2 -i 0.2 -W 1 -t 1 {to}"));
        String::from_utf8_lossy(&output.stdout).contains("Time to live exceeded")
    };
    assert!(eventually(|| ping("10.0.2.2")), "{}", lab.show("counters"));
    assert!(!ping("10.0.2.3"), "{}", lab.show("counters"));
    program.end("TERM");
}

const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

#[test]
fn what_cannot_be_enforced_is_refused() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let rules = lab.rules();
    let path = rules.to_str().unwrap();
    let cases = [
        (
            "block return all\n",
            "pf",
            "",
            format!("{path}:1:1: beside a kernel blocked packets are not answered"),
        ),
        (
            "nat on eth2 from any -> 10.0.2.1\npass\n",
            "pf",
            "",
            format!("{path}:1:1: beside a kernel no addresses"),
        ),
        (
            "add 10 reset tcp from any to any\n",
            "ipfw",
            "",
            format!("{path}: rule 10: beside a kernel blocked"),
        ),
        ("pass everything\n", "pf", "", format!("{path}:1:6")),
        (
            "block\npass keep state (max 10)\n",
            "pf",
            "--workers 2",
            format!("{path}:2:1: several workers do not count together"),
        ),
        (
            "add allow tcp from any to any limit src-addr 9\n",
            "ipfw",
            "--workers 2",
            format!("{path}: rule 100: several workers do not count together"),
        ),
        ("pass\n", "pf", "--engine xdp", "filter: only threads have that".to_owned()),
        ("pass\n", "pf", "--engine tc", "filter: only threads have that".to_owned()),
    ];
    for (text, language, options, expected) in cases {
        lab.write(text);
        let line = format!(
            "{FULLVIEW} forward --interfaces eth1,eth2 --filter {path} --filter-language {language} {options}"
        );
        let output = lab.lab.router.try_command(&line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(&expected), "{text}: {error}");
        assert!(!lab.has_fence(), "{text}: rules that are refused close nothing");
    }
}
