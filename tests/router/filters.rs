//! Rules of the host that forwarded packets would not meet: the router refuses to forward past them, or says so.

use fullview_testnet::{Node, eventually, may_run};

#[cfg(feature = "bpf")]
use crate::lab::prepare;
use crate::lab::{Lab, forward};

const PROGRAMS: [&str; 4] = ["ip", "setpriv", "nft", "tc"];

/// What the program says when it is started with these arguments, and with which code it ends.
fn refusal(router: &Node, arguments: &str) -> (Option<i32>, String) {
    let line = format!("{} forward --interfaces eth1,eth2 {arguments}", env!("CARGO_BIN_EXE_fullview"));
    let output = router.try_command(&line);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn assert_refused(router: &Node, arguments: &str, what: &str) {
    let (code, said) = refusal(router, arguments);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(what) && said.contains("--bypass-filters"), "{said}");
}

#[test]
fn a_router_does_not_start_past_the_rules_of_nftables() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let nft = |arguments: &str| lab.router.command(&format!("nft {arguments}"));
    nft("add table inet own");
    nft("add chain inet own input { type filter hook input priority 0; policy drop; }");
    nft("add chain inet own forward { type filter hook forward priority 0; }");
    nft("add rule inet own input accept");
    forward(&lab.router, "eth1,eth2", &[]).end("TERM");
    nft("add rule inet own forward tcp dport 9999 reject");
    assert_refused(&lab.router, "", "nftables, table inet own, chain forward (hook forward)");
    let program = forward(&lab.router, "eth1,eth2", &["--bypass-filters"]);
    assert!(program.output().contains("chain forward"), "{}", program.output());
    program.end("TERM");
}

#[test]
fn a_router_does_not_start_past_policies_of_ipsec_or_a_limit_of_the_rate() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    lab.router.ip("xfrm policy add dir fwd src 10.0.0.0/8 dst 10.0.0.0/8 action block");
    assert_refused(&lab.router, "", "policies in the direction fwd or out (`ip xfrm policy`)");
    lab.router.ip("xfrm policy flush");
    lab.router.command("tc qdisc add dev eth2 root tbf rate 20mbit burst 10k latency 50ms");
    if cfg!(feature = "bpf") {
        assert_refused(&lab.router, "--engine xdp", "interface eth2: queueing discipline tbf");
    }
    forward(&lab.router, "eth1,eth2", &[]).end("TERM");
}

#[test]
fn rules_that_come_while_the_router_runs_are_reported_once() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let program = lab.forward(&[]);
    lab.router.command("nft add table ip own");
    lab.router.command("nft add chain ip own forward { type filter hook forward priority 0; policy drop; }");
    let reported = || program.output().matches("chain forward (hook forward, policy drop)").count();
    assert!(eventually(|| reported() == 1), "{}", program.output());
    lab.router.command("nft add rule ip own forward accept");
    lab.router.command("nft add chain ip own nat { type nat hook postrouting priority 100; }");
    lab.router.command("nft add rule ip own nat masquerade");
    assert!(eventually(|| program.output().contains("chain nat")), "{}", program.output());
    assert_eq!(reported(), 1);
}

#[cfg(feature = "bpf")]
#[test]
fn a_limit_of_the_rate_of_an_interface_that_comes_later_is_reported() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let router = Node::new();
    prepare(&router);
    let program = forward(&router, "eth1,eth2", &["--engine", "xdp", "--wait"]);
    for name in ["eth1", "eth2"] {
        router.ip(&format!("link add {name} type veth peer name {name}-peer"));
    }
    router.command("tc qdisc add dev eth2 root tbf rate 20mbit burst 10k latency 50ms");
    ["eth1", "eth2", "eth1-peer", "eth2-peer"]
        .iter()
        .for_each(|name| drop(router.ip(&format!("link set {name} up"))));
    let is_reported = || program.output().contains("interface eth2: queueing discipline tbf");
    assert!(eventually(is_reported), "{}", program.output());
}

#[test]
fn filters_of_tc_that_come_while_the_router_runs_are_reported() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    let program = lab.forward(&[]);
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("drops");
    std::fs::write(&code, "1,6 0 0 0,\n").unwrap();
    lab.router.command("tc qdisc add dev eth1 clsact");
    let filter = format!("bpf bytecode-file {} flowid 1:1", code.display());
    lab.router.command(&format!("tc filter add dev eth1 ingress {filter}"));
    let is_reported = || program.output().contains("tc, interface eth1: filters at ingress");
    assert!(eventually(is_reported), "{}", program.output());
}

/// The kernel reports interfaces, and applies the rules of the fence, by their own names.
#[test]
fn alternative_names_of_interfaces_are_refused() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = Lab::new();
    lab.router.ip("link property add dev eth1 altname lan1");
    let line = format!("{} forward --interfaces lan1,eth2 --wait", env!("CARGO_BIN_EXE_fullview"));
    let output = lab.router.try_command(&line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("lan1 is another name of interface eth1"), "{said}");
}
