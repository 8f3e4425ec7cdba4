//! Packets flow while we come, go and are killed: the kernel forwards before, beside and after us.

use std::net::Ipv4Addr;

use fullview_testnet::may_run;

use crate::lab::{Lab, reaches};
use crate::traffic::{Receiver, Sender, lost, twice};

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
    let (mut forwarded, mut in_hand) = (0, 0..0);
    for signal in ["TERM", "INT", "KILL"] {
        let program = lab.forward(options);
        receiver.wait_for(SOME);
        // What had not come when it was killed may have been in its rings, which are gone with it.
        let first = receiver.heard() as u32;
        let (_, said) = program.end(signal);
        in_hand = first..sender.sent();
        forwarded += said.matches("\"received\"").count();
        receiver.wait_for(SOME);
    }
    let sent = sender.end();
    let arrived = receiver.end();
    assert!(forwarded > 0, "we took part");
    assert_eq!(twice(&arrived), [0; 0]);
    let lost = lost(sent, &arrived);
    assert!(
        lost.iter().all(|number| in_hand.contains(number)),
        "in hand when it was killed {in_hand:?}: {lost:?}"
    );
}
