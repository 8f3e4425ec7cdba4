//! The router forwards packets from one host to another.

use fullview_testnet::may_run;

use crate::lab::{Lab, reaches};

#[test]
fn packets_of_both_families_go_through() {
    if !may_run(&["ip", "ping", "setpriv"]) {
        return;
    }
    go_through(&Lab::new(), &[]);
}

/// Checks that packets of both families are forwarded and that the kernel answers. Returns what the program printed.
pub fn go_through(lab: &Lab, options: &[&str]) -> String {
    let program = lab.forward(options);
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let (left6, right6) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left6, &right6, "[2001:db8:2::2]:9"), "{}", program.output());
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    lab.left.command("ping -c 3 -i 0.05 -W 60 2001:db8:2::2");
    lab.left.command("ping -c 1 -W 60 10.0.2.1");
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("forwarded") && !said.contains("[fib_algo]"), "{said}");
    said
}
