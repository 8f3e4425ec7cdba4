//! A router without a kernel that filters what it forwards.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_testnet::eventually;

use super::*;
use crate::datagrams::{passes, socket};

/// The left host may send to port 4000, and gets the answers; nothing else passes.
pub const PF: &str = "block all
pass in on left inet proto udp to port 4000 keep state
pass out on right inet proto udp to port 4000 keep state
";

const IPFW: &str = "add check-state
add allow udp from any to any 4000 in recv left keep-state
add deny ip from any to any
";

pub fn section(language: &str) -> String {
    format!("[filter]\nlanguage = \"{language}\"\nfile = \"FOLDER/rules\"\n")
}

/// Starts a router whose rules have to be there before it starts.
pub fn filtered(language: &str, rules: &str) -> Standalone {
    filtered_with(language, rules, "")
}

/// As [`filtered`], with more configuration.
pub fn filtered_with(language: &str, rules: &str, more: &str) -> Standalone {
    let rules_folder = tempfile::tempdir().unwrap();
    let file = rules_folder.path().join("rules");
    std::fs::write(&file, rules).unwrap();
    Standalone::start(&(section(language).replace("FOLDER/rules", file.to_str().unwrap()) + more))
}

fn only_allowed_flows_pass(language: &str, rules: &str) {
    let lab = filtered(language, rules);
    let left = socket(&lab.left, "10.0.1.2:5000");
    let [allowed, other] = ["10.0.2.2:4000", "10.0.2.2:4001"].map(|address| socket(&lab.right, address));
    assert!(!passes(&allowed, &left), "{language}: nothing passes before the first question");
    assert!(eventually(|| passes(&left, &allowed)), "{language}: {}", lab.show("counters"));
    assert!(passes(&allowed, &left), "{language}: the answer passes by the state: {}", lab.show("counters"));
    for (from, to) in [(&left, &other), (&other, &left)] {
        assert!(!passes(from, to), "{language}: {}", lab.show("counters"));
    }
    assert!(lab.show("counters").contains("filter_rule"), "{}", lab.show("counters"));
    lab.end();
}

#[test]
fn only_flows_that_the_rules_allow_pass() {
    if may_run_standalone() {
        only_allowed_flows_pass("pf", PF);
        only_allowed_flows_pass("ipfw", IPFW);
    }
}

/// The kernel gives frames of a tap to queues as it likes, so both directions of a flow come to different workers.
#[test]
fn several_workers_have_the_states_of_some_flows_each() {
    const HOSTS: u8 = 8;
    if !may_run_standalone() {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        std::fs::write(&file, rules).unwrap();
        let section = section(language).replace("FOLDER/rules", file.to_str().unwrap());
        let lab = Standalone::with("workers = 2", &section);
        let right = socket(&lab.right, "10.0.2.2:4000");
        for host in 2..2 + HOSTS {
            if host > 2 {
                lab.left.ip(&format!("addr add 10.0.1.{host}/24 dev eth0"));
            }
            let left = socket(&lab.left, &format!("10.0.1.{host}:5000"));
            assert!(!passes(&right, &left), "{language}: nothing passes before the first question");
            assert!(eventually(|| passes(&left, &right)), "{language}: {}", lab.show("counters"));
            assert!(eventually(|| passes(&right, &left)), "{language}: {}", lab.show("counters"));
        }
        let counters = lab.show("counters");
        assert!(counters.contains("worker 1:") && !counters.contains("hand_over"), "{counters}");
        lab.end();
    }
}

/// Rules would not match it.
#[test]
fn no_interface_comes_while_packets_are_filtered() {
    if !may_run_standalone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "pass no state\nblock in quick on left.300\n").unwrap();
    let section = section("pf").replace("FOLDER/rules", rules.to_str().unwrap());
    let lab = Standalone::start(&section);
    let vlan = "[interface.\"left.300\"]\naddress = [\"10.0.9.1/24\"]\n";
    let (success, output) = lab.reload(&format!("{section}{vlan}"));
    assert!(!success && output.contains("interface (with a filter)"), "{output}");
    let (success, output) = lab.reload(&section);
    assert!(success, "{output}");
}

#[test]
fn wrong_rules_keep_the_router_from_starting() {
    if !may_run_standalone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    let path = rules.to_str().unwrap();
    for (text, of_router, expected) in [
        ("pass everything\n", "", format!("{path}:1:6")),
        ("set limit states 4294967295\npass\n", "", "1 to 16777216 are possible".to_owned()),
        (
            "nat on left from any -> 10.0.2.1\npass\n",
            "workers = 2",
            format!("{path}:1:1: with several workers no addresses are translated"),
        ),
    ] {
        std::fs::write(&rules, text).unwrap();
        let file = write(&folder, of_router, &section("pf"));
        let output = Node::new().try_command(&format!("{FULLVIEW} forward --config {}", file.display()));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(&expected), "{text}: {error}");
    }
}

/// A router with rules in a file of its own, which tests write again.
pub struct Reloadable {
    pub lab: Standalone,
    pub rules: PathBuf,
    pub section: String,
    _folder: tempfile::TempDir,
}

impl Reloadable {
    pub fn start(rules: &str) -> Reloadable {
        Reloadable::of("pf", rules)
    }

    fn of(language: &str, rules: &str) -> Reloadable {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        std::fs::write(&file, rules).unwrap();
        let section = section(language).replace("FOLDER/rules", file.to_str().unwrap());
        Reloadable { lab: Standalone::start(&section), rules: file, section, _folder: folder }
    }

    pub fn reload(&self, rules: &str) -> (bool, String) {
        std::fs::write(&self.rules, rules).unwrap();
        self.lab.reload(&self.section)
    }
}

/// Port 4000 of the right host is open or closed for new flows; rules of another port move all rules each time.
fn round(number: u32, open: bool) -> String {
    let moved = format!("pass in on third proto udp to port {}\n", 5000 + number).repeat(number as usize % 3);
    format!("block all\n{moved}{}", if open { PF.trim_start_matches("block all\n") } else { "" })
}

/// As [`round`]. The numbers of the rules move too, as none of them has its own.
fn ipfw_round(number: u32, open: bool) -> String {
    let moved = format!("add deny udp from any to any {}\n", 5000 + number).repeat(number as usize % 3);
    let closed = "add check-state\nadd deny ip from any to any\n";
    format!("{moved}{}", if open { IPFW } else { closed })
}

#[test]
fn rules_are_reloaded_while_a_flow_passes_without_loss() {
    if may_run_standalone() {
        reload_while_a_flow_passes("pf", round);
        reload_while_a_flow_passes("ipfw", ipfw_round);
    }
}

fn reload_while_a_flow_passes(language: &str, round: fn(u32, bool) -> String) {
    const RELOADS: u32 = 40;
    let router = Reloadable::of(language, &round(0, true));
    let lab = &router.lab;
    let receiver = socket(&lab.right, "10.0.2.2:4000");
    let from = |port: u16| socket(&lab.left, &format!("10.0.1.2:{port}"));
    let flow = from(5000);
    assert!(eventually(|| passes(&flow, &receiver)), "{}", lab.show("counters"));
    let [reloaded, ended] = [AtomicBool::new(false), AtomicBool::new(false)];
    let (sent, received) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send_until(&reloaded, &flow, &receiver));
        let receiving = scope.spawn(|| receive_until(&ended, &receiver));
        let mut reloads = (0..RELOADS).map(|number| router.reload(&round(number, number % 2 == 1)));
        let refused = reloads.find(|(done, _)| !done);
        reloaded.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(refused, None);
        (sent, receiving.join().unwrap())
    });
    assert!(sent > RELOADS, "{sent} packets");
    assert_eq!(received, sent, "{}", lab.show("counters"));
    for (number, open) in [(0, false), (1, true), (2, false)] {
        let (success, output) = router.reload(&round(number, open));
        assert!(success, "{output}");
        let new = from(6000 + number as u16);
        // Hosts may not yet know each other.
        let passed = if open { eventually(|| passes(&new, &receiver)) } else { passes(&new, &receiver) };
        assert_eq!(passed, open, "round {number}");
        assert!(passes(&flow, &receiver), "the first flow has its states");
    }
    router.lab.end();
}

/// Sends packets of a flow; returns how many.
fn send_until(end: &AtomicBool, flow: &UdpSocket, to: &UdpSocket) -> u32 {
    let mut sent = 0;
    while !end.load(Ordering::Relaxed) {
        sent += u32::from(flow.send_to(b"more", to.local_addr().unwrap()).is_ok());
        std::thread::sleep(Duration::from_micros(500));
    }
    sent
}

/// Counts packets until no more come after the end.
fn receive_until(end: &AtomicBool, socket: &UdpSocket) -> u32 {
    let mut received = 0;
    loop {
        let ended = end.load(Ordering::Relaxed);
        match socket.recv_from(&mut [0; 64]) {
            Ok(_) => received += 1,
            Err(_) if ended => return received,
            Err(_) => {}
        }
    }
}

#[test]
fn wrong_rules_change_nothing_and_are_reported() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start(PF);
    let lab = &router.lab;
    let receiver = socket(&lab.right, "10.0.2.2:4000");
    let from = |port: u16| socket(&lab.left, &format!("10.0.1.2:{port}"));
    let path = router.rules.to_str().unwrap().to_owned();
    let overload = "table <bad>\npass in proto tcp keep state (max-src-conn 5, overload <bad>)\n";
    let wrong = [
        ("block all\npass everything\n", format!("{path}:2:6")),
        (overload, format!("{path}:2:1: 'overload' is not supported")),
        ("set limit states 5\nblock all\n", format!("{path}: the limits of states")),
    ];
    for (number, (rules, expected)) in (0..).zip(wrong) {
        let (success, output) = router.reload(rules);
        assert!(!success && output.contains(&expected), "{rules}: {output}");
        let events = lab.show("events");
        assert!(events.contains("refused: ") && events.contains(&expected), "{rules}: {events}");
        let new = from(6000 + number);
        assert!(eventually(|| passes(&new, &receiver)), "{rules}: {}", lab.show("counters"));
    }
    let other = router.section.replace("\"pf\"", "\"ipfw\"") + "states = 7\n";
    for (section, expected) in [(other.as_str(), "filter.language, filter.states"), ("", "filter")] {
        let (success, output) = lab.reload(section);
        assert!(!success && output.contains(&format!("{expected} cannot change")), "{output}");
    }
    assert!(router.reload("block all\n").0);
    assert!(!passes(&from(7000), &receiver));
    router.lab.end();
}

/// Rules that name an interface's addresses follow them.
#[test]
fn rules_get_the_addresses_of_the_same_reload() {
    if !may_run_standalone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    std::fs::write(&file, "block all\npass in on left inet proto icmp to self\n").unwrap();
    let section = section("pf").replace("FOLDER/rules", file.to_str().unwrap());
    let with = |address| format!("{section}[interface.fourth]\naddress = [\"{address}/24\"]\n");
    let lab = Standalone::start(&with("10.0.4.1"));
    let answers = |to: &str| lab.ping(&format!("-c 1 -W 1 {to}")).contains(" 1 received");
    assert!(eventually(|| answers("10.0.4.1")), "{}", lab.show("counters"));
    let (success, output) = lab.reload(&with("10.0.5.1"));
    assert!(success, "{output}");
    assert!(eventually(|| answers("10.0.5.1")), "{}", lab.show("counters"));
    assert!(!answers("10.0.4.1"));
}
