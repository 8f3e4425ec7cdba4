//! What an operator does with the running router: reloads, traces and captures.

use fullview_testnet::eventually;

use super::{ROUTES, Standalone, may_run_standalone};
use crate::traffic::{Receiver, Sender, lost, twice};

#[test]
fn a_reload_loses_no_packets() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    lab.right.ip("addr add 192.0.2.1/24 dev lo");
    lab.third.ip("addr add 192.0.2.1/24 dev lo");
    lab.answers("10.0.2.2");
    let receiver = Receiver::start(lab.right.udp("10.0.2.2:9"));
    let sender = Sender::start(lab.left.udp("10.0.1.2:0"), |_| [10, 0, 2, 2].into());
    let leads = |gateway: &str| {
        let (success, said) = lab.reload(&format!("[[route]]\nto = \"192.0.2.0/24\"\nvia = \"{gateway}\"\n"));
        assert!(success && said.contains("is in force"), "{said}");
        // Not even the first packet is lost, for which the router has to resolve the gateway.
        let said = lab.ping("-c 1 -W 60 192.0.2.1");
        assert!(said.contains("1 received"), "{said}");
        let path = lab.show("routes 192.0.2.1");
        assert!(path.contains(&format!("via {gateway}")), "{path}");
    };
    for _ in 0..3 {
        leads("10.0.2.2");
        leads("10.0.3.2");
    }
    // A VLAN with an address, a neighbour that never answers, and a route by it.
    let (success, said) = lab.reload(
        r#"
[interface."left.7"]
address = ["10.0.7.1/24"]

[[neighbor]]
address = "10.0.2.50"
dev = "right"
mac = "02:00:00:00:00:50"

[[route]]
to = "192.0.2.0/24"
via = "10.0.2.50"
"#,
    );
    assert!(success, "{said}");
    lab.answers("10.0.7.1");
    let path = lab.show("routes 192.0.2.1");
    assert!(path.contains("neighbour 02:00:00:00:00:50 on right"), "{path}");
    assert!(lab.show("interfaces").contains("left.7"));
    // A configuration that is refused changes nothing.
    let (success, said) = lab.reload("[[route]]\nto = \"192.0.2.0/24\"\nvia = \"10.9.9.9\"\n");
    assert!(!success && said.contains("10.9.9.9: it is in no network"), "{said}");
    let (success, said) = lab.reload("[framework]\nbucket-time-ms = 20\n[confine]\nseccomp = false\n");
    assert!(!success && said.contains("confine cannot change"), "{said}");
    assert!(lab.show("routes 192.0.2.1").contains("10.0.2.50"));
    // Back to the first configuration.
    let (success, said) = lab.reload("");
    assert!(success, "{said}");
    assert!(!lab.show("neighbors").contains("10.0.2.50") && !lab.show("routes").contains("192.0.2.0/24"));
    let sent = sender.end();
    let arrived = Receiver::end_with(sent, vec![receiver]).concat();
    assert!(sent > 100 && lost(sent, &arrived).is_empty(), "{sent} sent, lost {:?}", lost(sent, &arrived));
    assert!(twice(&arrived).is_empty());
    lab.end();
}

#[test]
fn packets_are_traced_and_captured_as_with_a_kernel() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start(ROUTES);
    lab.right.ip("addr add 8.8.8.8/32 dev lo");
    lab.answers("8.8.8.8");
    let traced = std::thread::scope(|scope| {
        let trace = scope.spawn(|| lab.ask("trace --interface left --match dst+8.8.8.8 --count 2"));
        let until = || {
            lab.ping("-c 1 -W 1 8.8.8.8");
            lab.ping("-c 1 -W 1 203.0.113.1");
            trace.is_finished()
        };
        assert!(eventually(until));
        trace.join().unwrap()
    });
    assert!(traced.0 && traced.1.contains("table 254: 0.0.0.0/0 via next hop"), "{}", traced.1);
    assert!(!traced.1.contains("BUT THE ROUTER DID OTHERWISE"), "{}", traced.1);
    let file = lab.folder.path().join("drops.pcapng");
    let captured = std::thread::scope(|scope| {
        let capture = scope.spawn(|| lab.ask(&format!("capture-drops --write {} --count 1", file.display())));
        let until = || {
            lab.ping("-c 1 -W 1 203.0.113.1");
            capture.is_finished()
        };
        assert!(eventually(until));
        capture.join().unwrap()
    });
    assert!(captured.0 && captured.1.contains("1 dropped packets"), "{}", captured.1);
    lab.end();
}
