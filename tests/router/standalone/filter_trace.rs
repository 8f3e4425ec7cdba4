//! The filter as a stage of a trace.

use fullview_testnet::eventually;

use super::filter::Reloadable;
use super::*;
use crate::datagrams::{passes, socket};

/// What a trace says about packets from the left host to a port of the right one.
fn traced(lab: &Standalone, port: u16) -> String {
    let left = socket(&lab.left, "10.0.1.2:0");
    let trace =
        || lab.ask(&format!("trace --interface left --match dst+10.0.2.2+and+dport+{port} --count 1"));
    let (success, traced) = std::thread::scope(|scope| {
        let trace = scope.spawn(trace);
        assert!(eventually(|| {
            let _ = left.send_to(b"question", ("10.0.2.2", port));
            trace.is_finished()
        }));
        trace.join().unwrap()
    });
    assert!(success && !traced.contains("BUT THE ROUTER DID OTHERWISE"), "{traced}");
    traced
}

#[test]
fn a_trace_names_the_rules_that_decide() {
    if !may_run_standalone() {
        return;
    }
    let rules =
        "block all\npass in on left proto udp to port 4000:4001\npass out on right proto udp to port 4001\n";
    let router = Reloadable::start(rules);
    let lab = &router.lab;
    let [left, right] = [(&lab.left, "10.0.1.2:5000"), (&lab.right, "10.0.2.2:4001")]
        .map(|(host, address)| socket(host, address));
    assert!(eventually(|| passes(&left, &right)));
    let incoming =
        "\n  filter, in on left: passes by rule 1: pass in on left proto udp from any to any port 4000:4001";
    for (port, words) in [
        (
            3999,
            &[
                "IPv4 header ok",
                "\n  filter, in on left: dropped by rule 0: block drop all\n  drop: filter_rule\n",
            ][..],
        ),
        (
            4000,
            &[incoming, "\n  filter, out on right: dropped by rule 0: block drop all\n  drop: filter_rule\n"],
        ),
        (
            4001,
            &[incoming, "\n  filter, out on right: passes by rule 2: pass out on right", "\n  sent on right"],
        ),
    ] {
        let traced = traced(lab, port);
        words.iter().for_each(|words| assert!(traced.contains(words), "{words:?} is missing in: {traced}"));
        assert_eq!(traced.contains("sent on"), port == 4001, "{traced}");
    }
    router.lab.end();
}

#[test]
fn a_trace_says_that_a_state_lets_a_packet_pass() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start("pass\n");
    let lab = &router.lab;
    let left = socket(&lab.left, "10.0.1.2:5000");
    let right = socket(&lab.right, "10.0.2.2:4000");
    let asked = || passes(&left, &right);
    assert!(eventually(asked));
    assert!(router.reload("block all\n").0);
    let trace = || lab.ask("trace --interface left --match dst+10.0.2.2+and+sport+5000 --count 1");
    let (success, traced) = std::thread::scope(|scope| {
        let trace = scope.spawn(trace);
        assert!(eventually(|| asked() && trace.is_finished()));
        trace.join().unwrap()
    });
    let words = "filter, out on right: passes by its state; without one it would be dropped by rule 0: block drop all";
    assert!(success && traced.contains(words) && traced.contains("sent on right"), "{traced}");
    router.lab.end();
}
