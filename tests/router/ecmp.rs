//! Flows over groups of next hops.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fullview_testnet::{PacketSocket, eventually, may_run};
use serde_json::Value;

use crate::control::Control;
use crate::lab::Lab;

const FLOWS: u16 = 64;
const FIRST_PORT: u16 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// The MAC address to which a flow's packets go, by the flow's source port.
type Ways = BTreeMap<u16, [u8; 6]>;

/// Sends a packet of each flow until all have arrived.
fn ways(lab: &Lab, socket: &mut PacketSocket) -> Ways {
    let mut ways = Ways::new();
    let deadline = Instant::now() + PATIENCE;
    while ways.len() < usize::from(FLOWS) {
        assert!(Instant::now() < deadline, "{} of {FLOWS} flows arrived", ways.len());
        for port in FIRST_PORT..FIRST_PORT + FLOWS {
            let _ = lab.left.udp(&format!("10.0.1.2:{port}")).send_to(b"x", "172.16.0.9:9");
        }
        let until = Instant::now() + Duration::from_millis(200);
        ways.extend(std::iter::from_fn(|| socket.receive(until)).filter_map(|frame| way(&frame)));
    }
    ways
}

/// The flow and the station of a frame to 172.16.0.9.
fn way(frame: &[u8]) -> Option<(u16, [u8; 6])> {
    let is_ours = frame.get(12..14)? == [8, 0] && frame.get(30..34)? == [172, 16, 0, 9];
    let port = u16::from_be_bytes(frame.get(34..36)?.try_into().ok()?);
    is_ours.then_some((port, *frame.first_chunk()?))
}

#[test]
fn flows_keep_their_way_when_the_router_starts_again() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    for host in [3, 4] {
        lab.router
            .ip(&format!("neigh add 10.0.2.{host} lladdr 02:00:00:00:00:0{host} dev eth2 nud permanent"));
    }
    lab.router.ip("route add 172.16.0.0/24 nexthop via 10.0.2.3 nexthop via 10.0.2.4");
    let mut socket = lab.right.packet_socket("eth0");
    let mut after_a_start = || {
        let program = lab.forward(&[]);
        let ways = ways(&lab, &mut socket);
        assert_eq!(program.end("TERM").0, Some(0));
        ways
    };
    let first = after_a_start();
    assert!([3, 4].iter().all(|host| first.values().any(|mac| mac[5] == *host)), "{first:?}");
    assert_eq!(after_a_start(), first);
}

/// Each change makes a group, whose index the one before it cannot have: workers may still read that.
#[test]
fn indices_of_groups_are_used_again_while_workers_get_no_packets() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let (lab, control) = (Lab::new(), Control::new());
    let _program = lab.forward(&[&["--workers", "2"], &control.options()[..]].concat());
    let (mut weights, mut last, mut seen) = ([1, 2].into_iter().cycle(), Value::Null, BTreeSet::new());
    let is_used_again = eventually(|| {
        let hops = format!("nexthop via 10.0.2.3 weight {} nexthop via 10.0.2.4", weights.next().unwrap());
        lab.router.ip(&format!("route replace 172.16.0.0/24 {hops}"));
        let path = r#"{"path":{"address":"172.16.0.9","table":254}}"#;
        control.wait_until(path, |path| {
            path["ways"].as_array().unwrap().len() == 2 && path["fib-next-hop"] != last
        });
        last = control.ask(path)["fib-next-hop"].clone();
        !seen.insert(last.as_u64().unwrap())
    });
    assert!(is_used_again, "{seen:?}");
}
