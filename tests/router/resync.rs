//! The kernel changes more than the router's socket has room for, while the router does not read: afterwards the router
//! has exactly the kernel's routes.

use std::collections::BTreeSet;

use fullview_testnet::{Node, Program, may_run};

use crate::control::Control;
use crate::lab::Lab;

/// Many times as many as the socket has room for.
const ROUTES: u32 = 20_000;
const BUFFER: &str = "1048576";
const WITHIN: &str = "172.16.0.0/12";
/// The protocol of the routes that are removed again.
const PASSING: u32 = 99;

fn batch(node: &Node, lines: impl Iterator<Item = String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch");
    std::fs::write(&file, lines.map(|line| line + "\n").collect::<String>()).unwrap();
    node.ip(&format!("-batch {}", file.display()));
}

/// Returns an address of the lower half of [`WITHIN`].
fn host(n: u32) -> String {
    std::net::Ipv4Addr::from(0xac10_0000 + n).to_string()
}

/// Makes changes that the router does not read, the last of which contradict the first.
fn change_unread(router: &Node, program: &Program) {
    program.signal("STOP");
    batch(router, (0..ROUTES).map(|n| format!("route add {} via 10.0.2.2 proto {PASSING}", host(n))));
    router.ip(&format!("route flush proto {PASSING}"));
    batch(router, (0..100).map(|n| format!("route add {} via 10.0.1.2", host(ROUTES / 2 + n))));
    program.signal("CONT");
}

fn of_kernel(router: &Node) -> BTreeSet<String> {
    let shown = router.ip(&format!("route show root {WITHIN}"));
    shown.lines().filter_map(|line| Some(format!("{}/32", line.split_whitespace().next()?))).collect()
}

fn of_router(control: &Control) -> BTreeSet<String> {
    let (mut all, mut after) = (BTreeSet::new(), String::new());
    loop {
        let page =
            control.ask(&format!(r#"{{"routes":{{"table":254,"within":"{WITHIN}","limit":1000{after}}}}}"#));
        let routes = page["routes"].as_array().unwrap();
        all.extend(routes.iter().map(|route| route["prefix"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!(r#","after":"{next}""#),
            None => return all,
        }
    }
}

#[test]
fn after_an_overflow_no_older_message_is_applied_over_the_dump() {
    if !may_run(&["ip", "setpriv", "kill"]) {
        return;
    }
    let (lab, control) = (Lab::new(), Control::new());
    let [option, socket] = control.options();
    let program = lab.forward(&[option, socket, "--netlink-buffer", BUFFER]);
    change_unread(&lab.router, &program);
    let equals = || fullview_testnet::eventually(|| of_router(&control) == of_kernel(&lab.router));
    assert!(equals(), "{} routes; {}", of_router(&control).len(), program.output());
    assert_eq!(of_router(&control).len(), 100);
    assert!(program.output().contains("the kernel dropped messages"), "{}", program.output());
    // The router reads this change after all that were before it.
    lab.router.ip("route add 172.31.0.1 via 10.0.1.2");
    control.wait_until(r#"{"path":{"table":254,"address":"172.31.0.1"}}"#, |path| {
        path["route"]["prefix"] == "172.31.0.1/32"
    });
    assert_eq!(of_router(&control), of_kernel(&lab.router));
}
