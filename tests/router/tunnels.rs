//! What goes into a tunnel and comes out of it: VXLAN between the router and the right host, through which the left host reaches a
//! network behind it. An interface with a tunnel that is not named is the kernel's; one that is named forwards like any other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use fullview_testnet::{ANSWER, Node, Program, eventually, has, may_run};

use crate::lab::{Lab, forward, forwarded_by_kernel, reaches};

/// The MTU of the links, and that of the tunnel.
const LINK: usize = 1500;
const TUNNEL: usize = LINK - 50;

/// Whether the kernel has VXLAN, which is a module of most.
fn has_vxlan() -> bool {
    let made = Node::new().try_command("ip link add vx0 type vxlan id 9 dstport 4789");
    has(made.status.success(), "VXLAN in the kernel: `modprobe vxlan`")
}

/// The router with a tunnel `vx0` to the right host, whose own address in it is 10.0.9.2 and 2001:db8:9::2.
fn lab() -> Lab {
    let lab = Lab::new();
    for (node, link, me, other) in [(&lab.router, "eth2", 1, 2), (&lab.right, "eth0", 2, 1)] {
        node.ip(&format!(
            "link add vx0 type vxlan id 9 dstport 4789 dev {link} local 10.0.2.{me} remote 10.0.2.{other}"
        ));
        node.ip(&format!("link set vx0 mtu {TUNNEL} up"));
        node.ip(&format!("addr add 10.0.9.{me}/24 dev vx0"));
        node.ip(&format!("addr add 2001:db8:9::{me}/64 dev vx0 nodad"));
    }
    // What comes out of the tunnel goes back into it.
    lab.right.ip("route add 10.0.1.0/24 via 10.0.9.1");
    lab.right.ip("-6 route add 2001:db8:1::/64 via 2001:db8:9::1");
    lab
}

/// Bytes that come out of one end of a connection as they went into the other, in each direction.
fn carries(from: &Node, to: &Node, address: &'static str) {
    const BYTES: usize = 1 << 20;
    let listener = to.run(move || TcpListener::bind(address).unwrap());
    let near = from.run(move || TcpStream::connect_timeout(&address.parse().unwrap(), ANSWER).unwrap());
    let (far, _) = listener.accept().unwrap();
    let sent: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8).collect();
    for (mut from, mut to) in [(&near, &far), (&far, &near)] {
        to.set_read_timeout(Some(ANSWER)).unwrap();
        let mut received = vec![0; BYTES];
        thread::scope(|scope| {
            scope.spawn(|| from.write_all(&sent).unwrap());
            to.read_exact(&mut received).unwrap();
        });
        assert!(received == sent, "{address}");
    }
}

/// Datagrams that the tunnel does not take in one piece: their sender learns so and sends smaller ones.
fn sender_learns_the_mtu(lab: &Lab, own: &str, other: &str, headers: usize) -> bool {
    let (from, to) = (lab.left.udp(own), lab.right.udp(other));
    to.set_read_timeout(Some(ANSWER / 60)).unwrap();
    let (sent, mut room) = (vec![7; LINK - headers], [0; LINK]);
    let arrives = eventually(|| {
        // The first ones come back as too long.
        let _ = from.send_to(&sent, other);
        to.recv(&mut room).is_ok_and(|len| room[..len] == *sent)
    });
    let address = to.local_addr().unwrap().ip();
    arrives && lab.left.ip(&format!("route get {address}")).contains(&format!(" mtu {TUNNEL}"))
}

fn check(lab: &Lab, program: &Program) {
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.9.2:7"));
    assert!(reaches(&left, &right, "10.0.9.2:7"), "{}", program.output());
    for address in ["10.0.9.2:4080", "[2001:db8:9::2]:4080"] {
        carries(&lab.left, &lab.right, address);
    }
    for (own, other, headers) in
        [("10.0.1.2:0", "10.0.9.2:9", 28), ("[2001:db8:1::2]:0", "[2001:db8:9::2]:9", 48)]
    {
        assert!(sender_learns_the_mtu(lab, own, other, headers), "{other}: {}", program.output());
    }
}

/// Ends the program, and returns how many packets it has forwarded.
fn forwarded(program: Program) -> u64 {
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    let number = |line: &str| line.split_once(" forwarded")?.0.rsplit(' ').next()?.parse().ok();
    said.lines().find_map(number).unwrap_or_else(|| panic!("{said}"))
}

fn tunnel_carries(interfaces: &str, options: &[&str]) {
    if !may_run(&["ip", "setpriv", "ethtool"]) || !has_vxlan() {
        return;
    }
    let lab = lab();
    if options.iter().any(|option| option.starts_with("xdp")) {
        lab.behave_as_wires();
    }
    let program = forward(&lab.router, interfaces, options);
    check(&lab, &program);
    // Large segments go in one piece.
    const LEAST: u64 = 50;
    match interfaces.ends_with("vx0") {
        true => assert!(forwarded(program) > LEAST),
        false => assert!(forwarded_by_kernel(&lab.router) > LEAST),
    }
}

/// Makes tests of a tunnel that is the kernel's, and of one that is the router's.
macro_rules! tunnel {
    ($($engine:ident: $options:expr),* $(,)?) => {
        mod of_the_kernel {
            $(#[test] fn $engine() { super::tunnel_carries("eth1,eth2", $options); })*
        }
        mod of_the_router {
            $(#[test] fn $engine() { super::tunnel_carries("eth1,eth2,vx0", $options); })*
        }
    };
}

tunnel! {
    auto: &[],
    tc: &["--engine", "tc"],
    generic_xdp: &["--engine", "xdp-generic"],
    packet_sockets: &["--port", "packet"],
    af_xdp: &["--port", "xdp"],
}
