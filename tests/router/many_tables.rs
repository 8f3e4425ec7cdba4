//! More routing tables than the XDP program has room for, which no interface uses.

use fullview_testnet::{eventually, may_run};

use crate::control::Control;
use crate::lab::{Lab, reaches};

#[test]
fn tables_that_no_interface_uses_do_not_end_the_engine() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let (lab, control) = (Lab::new(), Control::new());
    lab.behave_as_wires();
    let [option, socket] = control.options();
    let program = lab.forward(&["--engine", "xdp-generic", option, socket]);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    for table in 1_000..1_300 {
        lab.router.ip(&format!("route add 198.18.0.0/15 via 10.0.2.2 table {table}"));
    }
    lab.router.ip("neigh replace 10.0.2.77 lladdr 02:00:00:00:00:77 dev eth2 nud permanent");
    // The router reads this change after all that were before it.
    lab.router.ip("route add 172.31.0.1 via 10.0.1.2");
    let marked = r#"{"path":{"table":254,"address":"172.31.0.1"}}"#;
    control.wait_until(marked, |path| path["route"]["prefix"] == "172.31.0.1/32");
    let forwarded = || control.ask("\"counters\"")["program"]["forwarded"].as_u64().unwrap();
    let before = forwarded();
    let still_forwards = || reaches(&left, &right, "10.0.2.2:9") && forwarded() > before;
    assert!(eventually(still_forwards), "{}", program.output());
    assert!(!program.output().contains("tables of VRFs"), "{}", program.output());
}
