//! Routes of the configuration: where they lead, how groups share flows, which table an interface uses.

use std::collections::BTreeMap;
use std::time::Duration;

use fullview_testnet::{Node, eventually};

use super::{ROUTES, Standalone, count_flows, may_run_standalone};
use crate::lab::accept_every_address;

#[test]
fn routes_lead_where_the_configuration_says() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start(ROUTES);
    for to in ["192.0.2.77", "8.8.8.8"] {
        lab.right.ip(&format!("addr add {to}/32 dev lo"));
        lab.answers(to);
    }
    lab.right.ip("addr add 2001:db8:ff::9/128 dev lo");
    lab.answers("2001:db8:ff::9");
    let blackhole = lab.ping("-c 1 -W 1 203.0.113.1");
    assert!(blackhole.contains("100% packet loss") && !blackhole.contains("From"), "{blackhole}");
    let unreachable = lab.ping("-c 1 -W 60 203.0.113.65");
    assert!(unreachable.contains("Destination Host Unreachable"), "{unreachable}");
    let prohibited = lab.ping("-c 1 -W 60 203.0.113.129");
    assert!(prohibited.contains("Packet filtered"), "{prohibited}");
    let path = lab.show("routes 192.0.2.77");
    assert!(path.contains("table 254, route 0.0.0.0/0") && path.contains("via 10.0.2.2 dev right"), "{path}");
    assert!(lab.show("routes 203.0.113.1").contains("blackhole"));
    assert!(lab.show("counters").contains("dropped: blackhole 1"));
    lab.end();
}

const WEIGHTED: &str = r#"
[[route]]
to = "192.0.2.0/24"
ways = [{ via = "10.0.2.2", weight = 3 }, { via = "10.0.3.2" }]
"#;

#[test]
fn flows_are_shared_by_weights_and_each_keeps_its_next_hop() {
    if !may_run_standalone() {
        return;
    }
    const FLOWS: u16 = 400;
    const PACKETS: u32 = 3;
    let lab = Standalone::start(WEIGHTED);
    for host in [&lab.right, &lab.third] {
        accept_every_address(host, "eth0");
    }
    let listen = |host: &Node| {
        let socket = host.udp("0.0.0.0:9");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket
    };
    let hosts = [listen(&lab.right), listen(&lab.third)];
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    let mut count = || {
        hosts.iter().zip(&mut counts).for_each(|(socket, flows)| count_flows(socket, flows));
        counts.clone()
    };
    let both_are_found = eventually(|| {
        // So many that each host gets some: of 20, in one start of 300, all went to the one with three quarters.
        for port in 100..200 {
            lab.left.udp(&format!("10.0.1.2:{port}")).send_to(b"first", "192.0.2.7:9").unwrap();
        }
        count().iter().all(|flows| !flows.is_empty())
    });
    assert!(both_are_found, "{}", lab.router.output());
    for port in 20_000..20_000 + FLOWS {
        let socket = lab.left.udp(&format!("10.0.1.2:{port}"));
        (0..PACKETS).for_each(|_| assert!(socket.send_to(b"more", "192.0.2.7:9").is_ok()));
    }
    let mut arrived =
        || count().map(|flows| flows.into_iter().filter(|(port, _)| *port >= 20_000).collect::<Vec<_>>());
    let all_arrived = eventually(|| {
        arrived().iter().flatten().map(|(_, packets)| packets).sum::<u32>() >= u32::from(FLOWS) * PACKETS
    });
    let [right, third] = arrived();
    assert!(all_arrived, "{right:?} {third:?}");
    assert!(right.iter().chain(&third).all(|(_, packets)| *packets == PACKETS), "{right:?} {third:?}");
    assert_eq!(right.len() + third.len(), usize::from(FLOWS), "every flow has one next hop");
    assert!((240..=360).contains(&right.len()), "not about three quarters: {}", right.len());
    lab.end();
}

#[test]
fn interfaces_can_have_tables_of_their_own() {
    if !may_run_standalone() {
        return;
    }
    // In the other table, a host and the router have the addresses of the left host and the router there.
    let lab = Standalone::start(
        r#"
[interface.fourth]
address = ["10.0.1.1/24"]
table = 100

[[route]]
to = "0.0.0.0/0"
via = "10.0.2.2"
"#,
    );
    let fourth = Node::new();
    lab.hand_over("fourth", &fourth);
    fourth.ip("addr add 10.0.1.2/24 dev eth0");
    fourth.ip("route add default via 10.0.1.1");
    lab.right.ip("addr add 8.8.8.8/32 dev lo");
    for to in ["10.0.1.1", "10.0.2.2", "8.8.8.8"] {
        lab.answers(to);
    }
    lab.answers_to(&fourth, "10.0.1.1");
    for to in ["10.0.2.2", "8.8.8.8"] {
        let output = fourth.try_command(&format!("ping -n -c 1 -W 60 {to}"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable"), "{said}");
    }
    let neighbors = lab.show("neighbors");
    assert_eq!(neighbors.matches("10.0.1.2 ").count(), 2, "{neighbors}");
    // The other table gets a route by a gateway of its own; the main table does not have it.
    let (success, said) = lab.reload(
        r#"
[interface.fourth]
address = ["10.0.1.1/24"]
table = 100

[[route]]
to = "192.0.2.0/24"
via = "10.0.1.2"
table = 100
"#,
    );
    assert!(success, "{said}");
    assert!(lab.show("routes 192.0.2.1").contains("no route"));
    assert!(lab.show("routes 192.0.2.1 --table 100").contains("via 10.0.1.2 dev fourth"));
    lab.end();
}

#[test]
fn routes_of_a_file_are_spread_over_gateways() {
    if !may_run_standalone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("view.txt");
    std::fs::write(&file, "192.0.2.0/24 1\n198.51.100.0/24 2\n203.0.113.0/24 3\n2001:db8:ff::/48 1\n")
        .unwrap();
    let feed = format!(
        "[feed]\nfile = \"{}\"\ngateways = [\"10.0.2.2\", \"10.0.3.2\", \"2001:db8:3::2\"]\n",
        file.display()
    );
    let lab = Standalone::start(&feed);
    for (to, gateway) in [
        ("192.0.2.1", "10.0.2.2"),
        ("198.51.100.1", "10.0.3.2"),
        ("203.0.113.1", "10.0.2.2"),
        ("2001:db8:ff::1", "2001:db8:3::2"),
    ] {
        let path = lab.show(&format!("routes {to}"));
        assert!(path.contains(&format!("via {gateway}")), "{path}");
    }
    lab.right.ip("addr add 203.0.113.1/32 dev lo");
    lab.answers("203.0.113.1");
    lab.end();
}
