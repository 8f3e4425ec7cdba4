//! A router without a kernel that filters what it forwards.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use fullview_testnet::eventually;

use super::*;

/// The left host may send to port 4000, and gets the answers; nothing else passes.
const PF: &str = "block all
pass in on left inet proto udp to port 4000 keep state
pass out on right inet proto udp to port 4000 keep state
";

const IPFW: &str = "add check-state
add allow udp from any to any 4000 in recv left keep-state
add deny ip from any to any
";

fn section(language: &str) -> String {
    format!("[filter]\nlanguage = \"{language}\"\nfile = \"FOLDER/rules\"\n")
}

/// Starts a router whose rules have to be there before it starts.
fn filtered(language: &str, rules: &str) -> Standalone {
    let rules_folder = tempfile::tempdir().unwrap();
    let file = rules_folder.path().join("rules");
    std::fs::write(&file, rules).unwrap();
    Standalone::start(&section(language).replace("FOLDER/rules", file.to_str().unwrap()))
}

fn socket(host: &Node, address: &str) -> UdpSocket {
    let socket = host.udp(address);
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// Whether something that the socket receives in time came from there.
fn hears(socket: &UdpSocket, from: SocketAddr) -> bool {
    let mut room = [0; 64];
    std::iter::from_fn(|| socket.recv_from(&mut room).ok()).any(|(_, sender)| sender == from)
}

fn only_allowed_flows_pass(language: &str, rules: &str) {
    let lab = filtered(language, rules);
    let left = socket(&lab.left, "10.0.1.2:5000");
    let [allowed, other] = ["10.0.2.2:4000", "10.0.2.2:4001"].map(|address| socket(&lab.right, address));
    let to = |receiver: &UdpSocket, sender: &UdpSocket| {
        let _ = sender.send_to(b"question", receiver.local_addr().unwrap());
        hears(receiver, sender.local_addr().unwrap())
    };
    assert!(!to(&left, &allowed), "{language}: nothing passes before the first question");
    assert!(eventually(|| to(&allowed, &left)), "{language}: {}", lab.show("counters"));
    assert!(to(&left, &allowed), "{language}: the answer passes by the state: {}", lab.show("counters"));
    for (receiver, sender) in [(&other, &left), (&left, &other)] {
        assert!(!to(receiver, sender), "{language}: {}", lab.show("counters"));
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

#[test]
fn a_trace_says_that_the_filter_dropped_a_packet() {
    if !may_run_standalone() {
        return;
    }
    let lab = filtered("pf", "block all\n");
    let left = socket(&lab.left, "10.0.1.2:5000");
    let (success, traced) = std::thread::scope(|scope| {
        let trace = scope.spawn(|| lab.ask("trace --interface left --match dst+10.0.2.2 --count 1"));
        assert!(eventually(|| {
            let _ = left.send_to(b"question", "10.0.2.2:4000");
            trace.is_finished()
        }));
        trace.join().unwrap()
    });
    assert!(success && traced.contains("filter, which dropped the packet: drop: filter_rule"), "{traced}");
    assert!(!traced.contains("BUT THE ROUTER DID OTHERWISE"), "{traced}");
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
    let nat = "nat on right inet from any to any -> 10.0.2.9\n";
    let path = rules.to_str().unwrap();
    for (text, of_router, expected) in [
        ("pass everything\n", "", format!("{path}:1:6")),
        (nat, "", "does not translate addresses".to_owned()),
        ("set limit states 4294967295\npass\n", "", "16777216 are possible".to_owned()),
        ("pass\n", "workers = 2", "set router.workers = 1".to_owned()),
    ] {
        std::fs::write(&rules, text).unwrap();
        let file = write(&folder, of_router, &section("pf"));
        let output = Node::new().try_command(&format!("{FULLVIEW} forward --config {}", file.display()));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(&expected), "{text}: {error}");
    }
}
