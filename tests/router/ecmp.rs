//! Flows over groups of next hops.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

#[cfg(feature = "bpf")]
use fullview_plane::wire::{ethernet::Mac, ipv4::Ipv4Packet};
use fullview_testnet::{PacketSocket, Program, eventually, may_run};
use serde_json::Value;

use crate::control::Control;
use crate::lab::Lab;
#[cfg(feature = "bpf")]
use crate::lab::forwarded_by_kernel;

const FLOWS: u16 = 64;
const FIRST_PORT: u16 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// The MAC address to which a flow's packets go, by the flow's source port.
type Ways = BTreeMap<u16, [u8; 6]>;

/// Where the flows come from and where they go to.
type Pair = [&'static str; 2];
const INET: Pair = ["10.0.1.2", "172.16.0.9"];
const INET6: Pair = ["2001:db8:1::2", "2001:db8:a::9"];

/// Sends a packet of each flow, by its port, until all have arrived.
fn ways_of(socket: &mut PacketSocket, to: IpAddr, mut send: impl FnMut(u16)) -> Ways {
    let mut ways = Ways::new();
    let deadline = Instant::now() + PATIENCE;
    while ways.len() < usize::from(FLOWS) {
        assert!(Instant::now() < deadline, "{} of {FLOWS} flows arrived", ways.len());
        (FIRST_PORT..FIRST_PORT + FLOWS).for_each(&mut send);
        let until = Instant::now() + Duration::from_millis(200);
        ways.extend(std::iter::from_fn(|| socket.receive(until)).filter_map(|frame| way(&frame, to)));
    }
    ways
}

/// Those of UDP.
fn ways(lab: &Lab, socket: &mut PacketSocket, pair: Pair) -> Ways {
    let [from, to] = pair.map(|address| address.parse::<IpAddr>().unwrap());
    ways_of(socket, to, |port| {
        let _ = lab.left.udp(&SocketAddr::new(from, port).to_string()).send_to(b"x", (to, 9));
    })
}

/// The flow and the station of a frame to this address.
fn way(frame: &[u8], to: IpAddr) -> Option<(u16, [u8; 6])> {
    let (kind, at, ports) = match to {
        IpAddr::V4(_) => ([8, 0], 30, 34),
        IpAddr::V6(_) => ([0x86, 0xdd], 38, 54),
    };
    let address = match to {
        IpAddr::V4(to) => to.octets().to_vec(),
        IpAddr::V6(to) => to.octets().to_vec(),
    };
    let is_ours = frame.get(12..14)? == kind && frame.get(at..)?.starts_with(&address);
    let port = u16::from_be_bytes(*frame.get(ports..)?.first_chunk()?);
    is_ours.then_some((port, *frame.first_chunk()?))
}

/// Routes by two neighbours that the router knows.
fn route_by_two(lab: &Lab) {
    for host in [3, 4] {
        for address in [format!("10.0.2.{host}"), format!("2001:db8:2::{host}")] {
            lab.router
                .ip(&format!("neigh add {address} lladdr 02:00:00:00:00:0{host} dev eth2 nud permanent"));
        }
    }
    lab.router.ip("route add 172.16.0.0/24 nexthop via 10.0.2.3 nexthop via 10.0.2.4");
    lab.router.ip("-6 route add 2001:db8:a::/48 nexthop via 2001:db8:2::3 nexthop via 2001:db8:2::4");
}

#[test]
fn flows_keep_their_way_when_the_router_starts_again() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    route_by_two(&lab);
    share_by(&lab, "1");
    let mut socket = lab.right.packet_socket("eth0");
    let mut after_a_start = || {
        let program = lab.forward(&[]);
        let ways = ways(&lab, &mut socket, INET);
        assert_eq!(program.end("TERM").0, Some(0));
        ways
    };
    let first = after_a_start();
    assert!([3, 4].iter().all(|host| first.values().any(|mac| mac[5] == *host)), "{first:?}");
    assert_eq!(after_a_start(), first);
}

/// The kernel gets the packets for a gateway that is not resolved, and may choose another one for all of them.
#[cfg(feature = "bpf")]
#[test]
fn the_gateways_of_several_next_hops_are_resolved_before_packets_come() {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    lab.right.ip("addr add 10.0.2.3/24 dev eth0");
    lab.router.ip("route add 172.16.0.0/24 nexthop via 10.0.2.2 nexthop via 10.0.2.3");
    let program = lab.forward(&["--engine", "tc"]);
    let are_known = || {
        ["10.0.2.2", "10.0.2.3"]
            .iter()
            .all(|gateway| lab.router.ip(&format!("neigh show {gateway}")).contains("REACHABLE"))
    };
    assert!(eventually(are_known), "{}\n{}", lab.router.ip("neigh show"), program.output());
    assert_eq!(program.end("TERM").0, Some(0));
}

/// Sets which fields of packets choose among several next hops.
fn share_by(lab: &Lab, policy: &str) {
    let setting = |family| format!("{family}/fib_multipath_hash_policy");
    ["ipv4", "ipv6"].into_iter().for_each(|family| lab.router.sysctl(&setting(family), policy));
}

/// The number of neighbours that get the flows of each of the two pairs of addresses.
fn neighbors_in_use(lab: &Lab, socket: &mut PacketSocket) -> [usize; 2] {
    [INET, INET6].map(|pair| ways(lab, socket, pair).into_values().collect::<BTreeSet<_>>().len())
}

fn flows_are_shared_by_the_fields_that_the_kernel_is_set_to(engine: &str) {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    #[cfg(feature = "bpf")]
    crate::xdp::prepare(&lab, engine);
    // A label would follow the ports.
    lab.left.sysctl("ipv6/auto_flowlabels", "0");
    route_by_two(&lab);
    share_by(&lab, "0");
    let program = lab.forward(&["--engine", engine]);
    let mut socket = lab.right.packet_socket("eth0");
    for (policy, wanted) in [("0", [1, 1]), ("1", [2, 2]), ("0", [1, 1])] {
        share_by(&lab, policy);
        let mut used = [0, 0];
        let is_followed = eventually(|| {
            used = neighbors_in_use(&lab, &mut socket);
            used == wanted
        });
        assert!(is_followed, "with {policy}: {used:?}, not {wanted:?}\n{}", program.output());
    }
    leaves_flows_to_the_kernel(&lab, &program, &mut socket);
}

/// By the inner headers only the kernel can choose.
fn leaves_flows_to_the_kernel(lab: &Lab, program: &Program, socket: &mut PacketSocket) {
    share_by(lab, "2");
    let is_said = |family| program.output().contains(&format!("packets of {family} by routes with several"));
    assert!(eventually(|| ["ipv4", "ipv6"].into_iter().all(is_said)), "{}", program.output());
    #[cfg(feature = "bpf")]
    assert!(eventually(|| {
        let before = forwarded_by_kernel(&lab.router);
        ways(lab, socket, INET);
        forwarded_by_kernel(&lab.router) >= before + u64::from(FLOWS)
    }));
    #[cfg(not(feature = "bpf"))]
    let _ = socket;
}

#[test]
fn threads_share_flows_by_the_fields_that_the_kernel_is_set_to() {
    flows_are_shared_by_the_fields_that_the_kernel_is_set_to("threads");
}

#[cfg(feature = "bpf")]
with_each_program!(flows_are_shared_by_the_fields_that_the_kernel_is_set_to);

/// A frame with a segment of TCP, without data and without a checksum of TCP, between the addresses of [`INET`].
#[cfg(feature = "bpf")]
fn segment(station: Mac, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 1, 2, 172, 16, 0, 9];
    Ipv4Packet::new_unchecked(&mut packet).fill_checksum();
    packet.extend(port.to_be_bytes());
    packet.extend([0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    [&station.0[..], &[2, 0, 0, 0, 0, 9, 8, 0], &packet].concat()
}

/// The hosts' interfaces receive several segments in one frame, which workers leave to the kernel.
#[cfg(feature = "bpf")]
#[test]
fn threads_leave_tcp_to_the_kernel_while_a_route_has_several_next_hops() {
    if !may_run(&["ip", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    route_by_two(&lab);
    let program = lab.forward(&["--engine", "threads"]);
    let station: Mac = lab.router.mac("eth1").parse().unwrap();
    let (mut sender, mut socket) = (lab.left.packet_socket("eth0"), lab.right.packet_socket("eth0"));
    let mut tcp = |socket: &mut PacketSocket| {
        ways_of(socket, INET[1].parse().unwrap(), |port| sender.send(&segment(station, port)).unwrap())
    };
    let udp = |socket: &mut PacketSocket| ways(&lab, socket, INET);
    let mut by_kernel = |send: &mut dyn FnMut(&mut PacketSocket) -> Ways| {
        let before = forwarded_by_kernel(&lab.router);
        send(&mut socket);
        forwarded_by_kernel(&lab.router) - before
    };
    assert!(eventually(|| by_kernel(&mut tcp) >= u64::from(FLOWS)), "{}", program.output());
    assert!(eventually(|| by_kernel(&mut { udp }) == 0), "workers forward UDP");
    lab.router.ip("route replace 172.16.0.0/24 via 10.0.2.3");
    lab.router.ip("-6 route del 2001:db8:a::/48");
    assert!(eventually(|| by_kernel(&mut tcp) == 0), "{}", program.output());
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
