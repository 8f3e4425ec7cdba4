//! Frames that are longer than a buffer of the driver: the XDP program forwards them, in as many buffers as they are in.

use std::net::UdpSocket;

use fullview_testnet::{Node, eventually, may_run};

use crate::control::Control;
use crate::lab::Lab;
use crate::xdp::{counted, prepare};

const MTU: usize = 9000;

/// The bytes of the largest datagram of a family, which depend on its number.
fn datagram(number: u32, headers: usize) -> Vec<u8> {
    let bytes = (0..).map(|at: u32| (number.wrapping_mul(31) ^ at.wrapping_mul(7)) as u8);
    bytes.take(MTU - headers).collect()
}

fn arrives(from: &UdpSocket, to: &UdpSocket, sent: &[u8]) -> bool {
    from.send_to(sent, to.local_addr().unwrap()).unwrap();
    let mut room = vec![0; MTU];
    to.recv(&mut room).is_ok_and(|len| room[..len] == *sent)
}

fn set_mtu(node: &Node, interface: &str) {
    node.ip(&format!("link set {interface} mtu {MTU}"));
}

#[test]
fn frames_of_9000_bytes_are_forwarded_by_the_program_in_the_driver() {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    for host in [&lab.left, &lab.right] {
        set_mtu(host, "eth0");
    }
    ["eth1", "eth2"].iter().for_each(|interface| set_mtu(&lab.router, interface));
    prepare(&lab, "xdp");
    let control = Control::new();
    let program = lab.forward(&[&["--engine", "xdp"][..], &control.options()].concat());
    for (own, other, headers) in
        [("10.0.1.2:0", "10.0.2.2:9", 20 + 8), ("[2001:db8:1::2]:0", "[2001:db8:2::2]:9", 40 + 8)]
    {
        let (left, right) = (lab.left.udp(own), lab.right.udp(other));
        let before = counted(&control, "forwarded");
        // The kernel forwards until the router knows the neighbours.
        let is_forwarded =
            || arrives(&left, &right, &datagram(0, headers)) && counted(&control, "forwarded") > before;
        assert!(eventually(is_forwarded), "{}", program.output());
        let before = counted(&control, "forwarded");
        (1..=100).for_each(|number| assert!(arrives(&left, &right, &datagram(number, headers)), "{number}"));
        assert!(counted(&control, "forwarded") >= before + 100, "{}", control.ask("\"counters\""));
    }
    assert_eq!(counted(&control, "too_big") + counted(&control, "no_multi_buffer"), 0);
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}
