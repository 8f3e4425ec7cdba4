//! Packets flow while we come, go and are killed: the kernel forwards before, beside and after us.

use std::net::Ipv4Addr;

use crate::lab::{Lab, reaches};
use crate::node::{between_two_looks, may_run};
use crate::traffic::{Receiver, Sender, lost, twice};

/// Packets that a killed process may have had in its hands: its rings are gone with it.
const IN_HAND: usize = 200;

/// Packets that are enough to see that they flow.
const SOME: usize = 300;

/// How it ends, one time after the other.
const SIGNALS: [&str; 3] = ["TERM", "INT", "KILL"];

#[test]
fn packets_flow_on_when_we_come_and_go() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    flow_on(&Lab::new(), &["--json"], between_two_looks(2 * SIGNALS.len()));
}

/// While a program with these options comes and goes, and may lose or double so many packets by that.
pub fn flow_on(lab: &Lab, options: &[&str], between: usize) {
    let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&from, &to, "10.0.2.2:9"), "the kernel forwards");
    let (sender, receiver) = (Sender::start(from, |_| Ipv4Addr::new(10, 0, 2, 2)), Receiver::start(to));
    let mut forwarded = 0;
    for signal in SIGNALS {
        let program = lab.forward(options);
        receiver.wait_for(SOME);
        let (_, said) = program.end(signal);
        forwarded += said.matches("\"received\"").count();
        receiver.wait_for(SOME);
    }
    let sent = sender.end();
    let arrived = receiver.end();
    assert!(forwarded > 0, "we took part");
    let twice = twice(&arrived);
    assert!(twice.len() <= between, "at most {between}: {twice:?}");
    let lost = lost(sent, &arrived);
    let apart = lost.windows(2).filter(|pair| pair[1] - pair[0] >= IN_HAND as u32).count();
    assert!(lost.len() <= IN_HAND && apart <= between, "only what was in hand when it was killed: {lost:?}");
}
