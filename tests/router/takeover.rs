//! Packets flow while our program starts, ends and is killed: the kernel forwards before, beside and after it.

use std::net::Ipv4Addr;

use fullview_testnet::may_run;

use crate::lab::{Lab, reaches};
use crate::traffic::{Receiver, Sender, lost, twice};

/// The number of packets that is enough to see that they flow.
const SOME: usize = 300;

#[test]
fn packets_flow_while_the_program_starts_and_ends() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    flow_on(&Lab::new(), &["--json", "--engine", "threads"]);
}

#[test]
#[cfg(feature = "bpf")]
fn packets_flow_while_the_program_in_the_kernel_is_attached_and_removed() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    flow_on(&Lab::new(), &["--json"]);
}

/// Checks that packets flow while a program with these options starts and ends.
pub fn flow_on(lab: &Lab, options: &[&str]) {
    let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&from, &to, "10.0.2.2:9"), "the kernel forwards");
    let (sender, receiver) = (Sender::start(from, |_| Ipv4Addr::new(10, 0, 2, 2)), Receiver::start(to));
    let (mut forwarded, mut in_hand) = (0, 0..0);
    for signal in ["TERM", "INT", "KILL"] {
        let program = lab.forward(options);
        receiver.wait_for(SOME);
        // Packets that had not arrived when the program was killed may have been in its rings, which the kernel removes.
        let first = receiver.received() as u32;
        let (_, said) = program.end(signal);
        in_hand = first..sender.sent();
        forwarded += said.matches("\"forwarded\"").count();
        receiver.wait_for(SOME);
    }
    let sent = sender.end();
    let arrived = receiver.end();
    assert!(forwarded > 0, "the program forwarded nothing");
    assert_eq!(twice(&arrived), [0; 0]);
    let lost = lost(sent, &arrived);
    assert!(
        lost.iter().all(|number| in_hand.contains(number)),
        "lost {lost:?}, of which {in_hand:?} may have been in its rings"
    );
}
