//! A router without a kernel that translates addresses.

use std::net::{SocketAddr, UdpSocket};

use fullview_testnet::eventually;

use super::filter::{filtered, socket};
use super::*;

/// The left network appears as the router's own address on the right.
const PF: &str = "nat on right inet from 10.0.1.0/24 to any -> (right)\npass all\n";

const IPFW: &str = "nat 1 config if right
add nat 1 ip from any to any via right
add allow ip from any to any
";

/// The sender and the text of the next datagram, if one comes in time.
fn receive(socket: &UdpSocket) -> Option<(SocketAddr, Vec<u8>)> {
    let mut room = [0; 2000];
    let (len, from) = socket.recv_from(&mut room).ok()?;
    Some((from, room[..len].to_vec()))
}

/// Sends until something arrives: the first packets may be lost while hosts resolve each other.
fn eventually_received(sender: &UdpSocket, to: &str, receiver: &UdpSocket) -> Option<SocketAddr> {
    let mut from = None;
    eventually(|| {
        let _ = sender.send_to(b"question", to);
        from = receive(receiver).map(|(from, _)| from);
        from.is_some()
    });
    from
}

#[test]
fn udp_appears_with_the_routers_address_and_its_answers_come_back() {
    if !may_run_standalone() {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW)] {
        let lab = filtered(language, rules);
        let (left, right) = (socket(&lab.left, "10.0.1.2:5000"), socket(&lab.right, "10.0.2.2:4000"));
        let from = eventually_received(&left, "10.0.2.2:4000", &right);
        let from = from.unwrap_or_else(|| panic!("{language}: {}", lab.show("counters")));
        assert_eq!(from.ip().to_string(), "10.0.2.1", "{language}");
        for size in [0, 1, 8, 9, 1000, 1371] {
            let payload = vec![0x5a; size];
            right.send_to(&payload, from).unwrap();
            let answer = (SocketAddr::from(([10, 0, 2, 2], 4000)), payload.clone());
            assert_eq!(receive(&left), Some(answer), "{language}: {}", lab.show("counters"));
            left.send_to(&payload, "10.0.2.2:4000").unwrap();
            assert_eq!(receive(&right), Some((from, payload)), "{language}: {}", lab.show("counters"));
        }
        lab.end();
    }
}
