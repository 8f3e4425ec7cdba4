//! A filter with several workers: a packet is judged by the worker that has the states of its flow, whichever receives it.

use std::net::UdpSocket;
#[cfg(feature = "bpf")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_testnet::{Program, eventually, may_run};
use serde_json::Value;

use crate::connections::EchoedConnection;
use crate::datagrams::{passes, socket};
use crate::kernel_filter::{FilterLab, IPFW, PF, is_blocked};

const PROGRAMS: [&str; 3] = ["ip", "setpriv", "nft"];
/// The left hosts, whose flows belong to different workers.
const HOSTS: u8 = 8;
const WORKERS: usize = 2;
/// Linux's `EHOSTUNREACH`.
const HOST_UNREACHABLE: i32 = 113;

/// A router with several workers between hosts on the left and one on the right.
struct WorkersLab {
    lab: FilterLab,
    program: Program,
}

impl WorkersLab {
    fn new(language: &str, rules: &str) -> WorkersLab {
        WorkersLab::prepared(language, rules, |_| ())
    }

    fn prepared(language: &str, rules: &str, prepare: impl FnOnce(&mut FilterLab)) -> WorkersLab {
        let mut lab = FilterLab::new(language, rules);
        lab.use_workers(WORKERS);
        for host in 3..2 + HOSTS {
            lab.lab.left.ip(&format!("addr add 10.0.1.{host}/24 dev eth0"));
        }
        prepare(&mut lab);
        let program = lab.start();
        WorkersLab { lab, program }
    }

    fn left(&self, host: u8) -> UdpSocket {
        socket(&self.lab.lab.left, &format!("10.0.1.{host}:5000"))
    }

    fn filter(&self) -> Value {
        serde_json::from_str(&self.lab.show("filter --json")).unwrap()
    }

    fn states(&self) -> usize {
        self.lab.show("states --json").lines().count()
    }

    fn end(self) -> String {
        let (code, output) = self.program.end("TERM");
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(all_slots(&output), Some(true), "{output}");
        output
    }
}

/// Whether all packet memory came back, by what the router says at its end.
fn all_slots(output: &str) -> Option<bool> {
    let (_, counts) = output.split_once("packet memory: ")?;
    let (back, all) = counts.split_once(" slots came back")?.0.split_once(" of ")?;
    Some(back == all)
}

/// Every host asks, and gets its answer. Before that, nothing comes.
fn all_flows_pass(lab: &WorkersLab, language: &str) {
    let right = lab.lab.right(4000);
    for host in 2..2 + HOSTS {
        let left = lab.left(host);
        assert!(!passes(&right, &left), "{language}: nothing passes before the first question");
        assert!(eventually(|| passes(&left, &right)), "{language}: {}", lab.lab.show("counters"));
        assert!(eventually(|| passes(&right, &left)), "{language}: {}", lab.lab.show("counters"));
    }
}

#[test]
fn answers_pass_by_the_states_of_all_workers() {
    if !may_run(&PROGRAMS) {
        return;
    }
    for (language, rules, of_a_flow) in [("pf", PF, 2), ("ipfw", IPFW, 1)] {
        let lab = WorkersLab::new(language, rules);
        all_flows_pass(&lab, language);
        let mut connection = EchoedConnection::open(&lab.lab.lab.left, &lab.lab.lab.right, "10.0.2.2:4080");
        connection.carries();
        let flows = usize::from(HOSTS) + 1;
        assert_eq!(lab.states(), flows * of_a_flow, "{}", lab.lab.show("states"));
        let shown = lab.filter();
        assert_eq!(shown["states"]["used"], flows * of_a_flow, "{shown}");
        let each: Vec<u64> = serde_json::from_value(shown["states-by-worker"].clone()).unwrap();
        assert!(each.len() == WORKERS && each.iter().all(|states| *states > 0), "{shown}");
        assert_eq!(each.iter().sum::<u64>() as usize, flows * of_a_flow, "{shown}");
        let line = format!("states of each worker {}, {}, of 50000 each", each[0], each[1]);
        assert!(lab.lab.show("filter").contains(&line), "{}", lab.lab.show("filter"));
        let of_rules: u64 =
            shown["rules"].as_array().unwrap().iter().map(|rule| rule["states"].as_u64().unwrap()).sum();
        assert_eq!(of_rules as usize, flows * of_a_flow, "{shown}");
        assert!(shown["totals"]["packets"].as_u64().unwrap() > 2 * u64::from(HOSTS), "{shown}");
        connection.close();
        lab.end();
    }
}

#[test]
fn states_of_all_workers_are_listed_page_by_page_and_removed() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = WorkersLab::new("ipfw", IPFW);
    all_flows_pass(&lab, "ipfw");
    assert_eq!(lab.lab.show("states 10.0.1.4 --json").lines().count(), 1);
    assert_eq!(lab.lab.ask("filter kill 10.0.1.4").trim(), "1 states removed");
    assert_eq!(lab.states(), usize::from(HOSTS) - 1);
    let (left, right) = (lab.left(4), lab.lab.right(4000));
    assert!(is_blocked(&right, &left), "its state is gone");
    let others = format!("{} states removed", HOSTS - 1);
    assert_eq!(lab.lab.ask("filter kill --all").trim(), others);
    assert_eq!(lab.states(), 0);
    lab.end();
}

#[test]
fn all_workers_take_other_rules_and_tables() {
    const WITH_TABLE: &str = "table <friends> persist { 10.0.1.2 10.0.1.3 }
block all
pass in on eth1 inet proto udp from <friends> to port 4000 no state
pass out on eth2 inet proto udp to port 4000 no state
";
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = WorkersLab::new("pf", WITH_TABLE);
    let right = lab.lab.right(4000);
    let passing = || (2..2 + HOSTS).filter(|host| passes(&lab.left(*host), &right)).collect::<Vec<_>>();
    assert!(eventually(|| passing() == [2, 3]), "{}", lab.lab.show("counters"));
    let all: Vec<String> = (4..2 + HOSTS).map(|host| format!("10.0.1.{host}")).collect();
    let said = lab.lab.ask(&format!("filter table friends add {}", all.join(" ")));
    assert!(eventually(|| passing().len() == usize::from(HOSTS)), "{said}");
    let said = lab.lab.ask("filter table friends delete 10.0.1.3 10.0.1.4 10.0.1.5");
    assert!(eventually(|| passing() == [2, 6, 7, 8, 9]), "{said}");
    lab.end();
}

/// The way to the host is lost behind the router, which says so in place of the host: the error has other addresses than the flow
/// that it is about.
#[test]
fn an_error_passes_by_the_state_of_the_packet_that_it_quotes() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = WorkersLab::prepared("pf", PF, |lab| {
        lab.lab.right.ip("route add prohibit 10.0.9.0/24");
        lab.lab.router.ip("route add 10.0.9.0/24 via 10.0.2.2");
        lab.lab.right.sysctl("ipv4/conf/all/forwarding", "1");
        lab.lab.right.sysctl("ipv4/icmp_ratelimit", "0");
    });
    for host in 2..2 + HOSTS {
        let left = lab.left(host);
        left.connect(format!("10.0.9.{host}:4000")).unwrap();
        let is_refused = || {
            let _ = left.send(&[1]);
            left.recv(&mut [0; 8]).is_err_and(|error| error.raw_os_error() == Some(HOST_UNREACHABLE))
        };
        assert!(eventually(is_refused), "host {host}: {}", lab.lab.show("counters"));
    }
    lab.end();
}

/// Fragments show no ports, except the first.
#[test]
fn fragments_pass_by_the_state_of_their_packet() {
    const BYTES: usize = 4000;
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = WorkersLab::new("pf", PF);
    let right = lab.lab.right(4000);
    right.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for host in 2..2 + HOSTS {
        let left = lab.left(host);
        assert!(eventually(|| passes(&left, &right)), "{}", lab.lab.show("counters"));
        for (from, to) in [(&left, &right), (&right, &left)] {
            let arrives = || {
                from.send_to(&[host; BYTES], to.local_addr().unwrap()).unwrap();
                to.recv(&mut [0; BYTES]).is_ok_and(|len| len == BYTES)
            };
            assert!(eventually(arrives), "host {host}: {}", lab.lab.show("counters"));
        }
    }
    lab.end();
}

#[cfg(feature = "bpf")]
fn use_two_queues(lab: &mut FilterLab) {
    for (host, near, far) in [(&lab.lab.left, "eth0", "eth1"), (&lab.lab.right, "eth0", "eth2")] {
        host.command(&format!("ethtool -L {near} rx 2 tx 2"));
        lab.lab.router.command(&format!("ethtool -L {far} rx 2 tx 2"));
    }
    lab.lab.behave_as_wires();
    lab.use_port("xdp");
}

/// Packets on their way between the workers come back too. Fragments go to workers, whichever flows the kernel forwards.
#[cfg(feature = "bpf")]
#[test]
fn a_router_ends_while_packets_come() {
    const BYTES: usize = 4000;
    if !may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        return;
    }
    for prepare in [|_: &mut FilterLab| (), use_two_queues] {
        let lab = WorkersLab::prepared("pf", PF, prepare);
        let right = lab.lab.right(4000);
        let far = right.local_addr().unwrap();
        let senders: Vec<_> = (2..2 + HOSTS).map(|host| lab.left(host)).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    senders.iter().for_each(|sender| _ = sender.send_to(&[1; BYTES], far));
                }
            });
            // As soon as the neighbour is known.
            let arrived = || (0..100).all(|_| right.recv(&mut [0; BYTES]).is_ok_and(|len| len == BYTES));
            let is_loaded = eventually(arrived) && lab.states() == 2 * usize::from(HOSTS);
            let counters = lab.lab.show("counters");
            lab.end();
            is_over.store(true, Ordering::Relaxed);
            assert!(is_loaded, "{counters}");
        });
    }
}

/// A card spreads flows over its queues by a hash of its own: one of the two directions comes to the other worker.
#[cfg(feature = "bpf")]
#[test]
fn packets_that_a_card_gives_to_another_worker_are_handed_over() {
    if !may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let lab = WorkersLab::prepared(language, rules, use_two_queues);
        all_flows_pass(&lab, language);
        let mut connection = EchoedConnection::open(&lab.lab.lab.left, &lab.lab.lab.right, "10.0.2.2:4080");
        (0..5).for_each(|_| connection.carries());
        connection.close();
        assert!(!lab.lab.show("counters").contains("hand_over"), "{}", lab.lab.show("counters"));
        lab.end();
    }
}

/// Each worker shares the flows that it has the states of.
#[cfg(feature = "bpf")]
#[test]
fn a_program_in_the_kernel_forwards_known_flows_of_all_workers() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = WorkersLab::new("pf", PF);
    let right = lab.lab.right(4000);
    for host in 2..2 + HOSTS {
        let left = lab.left(host);
        let in_kernel = || lab.filter()["kernel-flows"]["packets"].as_u64().unwrap();
        let before = in_kernel();
        let passes_there = || {
            let arrived = (0..5).filter(|_| passes(&left, &right) && passes(&right, &left)).count();
            // Counts are taken a few times a second.
            std::thread::sleep(Duration::from_millis(300));
            arrived > 0 && in_kernel() > before
        };
        assert!(eventually(passes_there), "host {host}: {}", lab.filter());
    }
    lab.end();
}

/// The new router has one worker, and the one after it has two again.
#[cfg(feature = "bpf")]
#[test]
fn states_go_to_other_numbers_of_workers() {
    if !may_run(&[&crate::handover::PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let mut lab = WorkersLab::new("ipfw", IPFW);
    all_flows_pass(&lab, "ipfw");
    let mut connection = EchoedConnection::open(&lab.lab.lab.left, &lab.lab.lab.right, "10.0.2.2:4080");
    connection.carries();
    let states = lab.states();
    for workers in [1, 3, 2] {
        lab.lab.use_workers(workers);
        let next = lab.lab.take_over();
        let mut before = std::mem::replace(&mut lab.program, next);
        lab.program.wait_for(&format!("{states} states of its filter go on"));
        assert!(eventually(|| !before.is_running()), "{}", before.output());
        connection.carries();
        assert_eq!(lab.states(), states, "{}", lab.lab.show("states"));
        let right = lab.lab.right(4000);
        for host in 2..2 + HOSTS {
            let left = lab.left(host);
            assert!(eventually(|| passes(&right, &left)), "{}", lab.lab.show("counters"));
        }
    }
    connection.close();
    lab.end();
}
