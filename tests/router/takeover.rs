//! Packets flow while we come, go and are killed: the kernel forwards before, beside and after us.

use std::net::Ipv4Addr;

use crate::lab::{Lab, reaches};
use crate::node::may_run;
use crate::traffic::{Receiver, Sender, lost, twice};

/// Packets that a killed process may have had in its hands: its rings are gone with it.
const IN_HAND: usize = 200;

/// Packets that are enough to see that they flow.
const SOME: usize = 300;

#[test]
fn packets_flow_on_when_we_come_and_go() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    flow_on(&Lab::new(), &["--json"]);
}

/// While a program with these options comes and goes.
pub fn flow_on(lab: &Lab, options: &[&str]) {
    let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&from, &to, "10.0.2.2:9"), "the kernel forwards");
    let (sender, receiver) = (Sender::start(from, |_| Ipv4Addr::new(10, 0, 2, 2)), Receiver::start(to));
    let mut forwarded = 0;
    for signal in ["TERM", "INT", "KILL"] {
        let program = lab.forward(options);
        receiver.wait_for(SOME);
        let (_, said) = program.end(signal);
        forwarded += said.matches("\"received\"").count();
        receiver.wait_for(SOME);
    }
    let sent = sender.end();
    let arrived = receiver.end();
    assert!(forwarded > 0, "we took part");
    assert_eq!(twice(&arrived), [0; 0]);
    let lost = lost(sent, &arrived);
    let at_once = lost.windows(2).all(|pair| pair[1] - pair[0] < IN_HAND as u32);
    assert!(lost.len() <= IN_HAND && at_once, "only what was in hand when it was killed: {lost:?}");
}
