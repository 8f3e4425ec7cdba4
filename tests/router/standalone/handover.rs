//! A new process takes the place of a router without a kernel. Its interfaces are gone meanwhile, and connections go on when the
//! hosts have the new ones.

use std::time::Duration;

use super::filter::{filtered, section};
use super::*;
use crate::connections::EchoedConnection;
use crate::handover::TAKEN;

/// Ports are chosen at random, so that a new state would have another one.
const PF: &str = "nat on right inet from 10.0.1.0/24 to any -> (right)
block all
pass in on left inet proto tcp to port 4080 flags S/SA keep state
pass out on right inet proto tcp to port 4080 flags S/SA keep state
";

const IPFW: &str = "nat 1 config if right
add nat 1 ip from any to any via right
add allow ip from any to any
";

impl Standalone {
    fn take_over(&mut self, language: &str, rules: &str) -> String {
        std::fs::write(self.folder.path().join("rules"), rules).unwrap();
        let file = write(&self.folder, "", &section(language));
        let mut next =
            self.home.start(FULLVIEW, &["forward", "--takeover", "--config", file.to_str().unwrap()]);
        next.wait_for(TAKEN);
        next.wait_for("forwarding");
        let mut before = std::mem::replace(&mut self.router, next);
        assert!(eventually(|| !before.is_running()), "{}", before.output());
        self.connect_hosts();
        before.output()
    }
}

fn a_translated_connection_goes_on(language: &str, rules: &str, states: &str) {
    let mut lab = filtered(language, rules);
    let mut connection = EchoedConnection::open(&lab.left, &lab.right, "10.0.2.2:4080");
    connection.carries();
    let output = lab.take_over(language, rules);
    assert!(output.contains(&format!("{states} states of the filter were handed over")), "{output}");
    let shown = lab.show("states --protocol tcp");
    assert!(shown.contains("10.0.2.1:"), "the source is translated: {shown}");
    connection.carries();
    // Both ends know only what the states made of their addresses.
    std::thread::sleep(Duration::from_millis(100));
    connection.carries();
    connection.close();
    lab.end();
}

#[test]
fn translated_connections_go_on() {
    if may_run_standalone() {
        a_translated_connection_goes_on("pf", PF, "2");
        a_translated_connection_goes_on("ipfw", IPFW, "1");
    }
}

#[test]
fn rules_with_an_error_leave_the_running_router_as_it_is() {
    if !may_run_standalone() {
        return;
    }
    let mut lab = filtered("pf", PF);
    let mut connection = EchoedConnection::open(&lab.left, &lab.right, "10.0.2.2:4080");
    std::fs::write(lab.folder.path().join("rules"), "pass everything\n").unwrap();
    let file = write(&lab.folder, "", &section("pf"));
    let mut next = lab.home.start(FULLVIEW, &["forward", "--takeover", "--config", file.to_str().unwrap()]);
    assert!(eventually(|| !next.is_running()));
    assert!(next.output().contains("rules:1:6"), "{}", next.output());
    assert!(lab.router.is_running(), "{}", lab.router.output());
    connection.carries();
    connection.close();
    lab.end();
}
