//! OSPF by FRR between four routers, one of which is ours: a link fails, and traffic takes the other path.
//!
//! ```text
//! source ── first (we) ── second ── last ── sink
//!                 └────── third ─────┘
//! ```

use fullview_testnet::{Node, cable, eventually, may_run};

use crate::frr::Frr;
use crate::lab::{forward, prepare, reaches};

/// An interface of a router: its name, its address and its cost in OSPF.
type Interface<'a> = (&'a str, &'a str, u32);

fn ospf(id: u8, interfaces: &[Interface<'_>]) -> String {
    let interface = |(name, _, cost): &Interface<'_>| {
        format!(
            "interface {name}\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n \
             ip ospf cost {cost}\n ip ospf area 0\n!\n"
        )
    };
    let all: String = interfaces.iter().map(interface).collect();
    format!("{all}router ospf\n ospf router-id 192.0.2.{id}\n timers throttle spf 10 50 200\n!\n")
}

fn router(node: &Node, id: u8, interfaces: &[Interface<'_>]) -> Frr {
    interfaces.iter().for_each(|(name, address, _)| drop(node.ip(&format!("addr add {address} dev {name}"))));
    Frr::start(node, "ospfd", &ospf(id, interfaces))
}

#[test]
fn traffic_follows_the_routes_of_ospf() {
    if !may_run(&["ip", "setpriv", "zebra", "ospfd", "vtysh"]) {
        return;
    }
    let (source, sink) = (Node::new(), Node::new());
    let [first, second, third, last] = [(); 4].map(|()| Node::new());
    prepare(&first);
    [&second, &third, &last].iter().for_each(|node| node.sysctl("ipv4/conf/all/forwarding", "1"));
    cable((&source, "eth0"), (&first, "host"));
    cable((&first, "second"), (&second, "first"));
    cable((&first, "third"), (&third, "first"));
    cable((&second, "last"), (&last, "second"));
    cable((&third, "last"), (&last, "third"));
    cable((&sink, "eth0"), (&last, "host"));
    source.ip("addr add 10.1.0.2/24 dev eth0");
    source.ip("route add default via 10.1.0.1");
    sink.ip("addr add 10.2.0.2/24 dev eth0");
    sink.ip("route add default via 10.2.0.1");
    let daemons = [
        router(
            &first,
            1,
            &[("host", "10.1.0.1/24", 10), ("second", "10.12.0.1/24", 10), ("third", "10.13.0.1/24", 50)],
        ),
        router(&second, 2, &[("first", "10.12.0.2/24", 10), ("last", "10.24.0.2/24", 10)]),
        router(&third, 3, &[("first", "10.13.0.2/24", 50), ("last", "10.34.0.2/24", 50)]),
        router(
            &last,
            4,
            &[("second", "10.24.0.1/24", 10), ("third", "10.34.0.1/24", 50), ("host", "10.2.0.1/24", 10)],
        ),
    ];
    let program = forward(&first, "host,second,third", &[]);
    let goes_by = |router: &str| {
        let by = || first.ip("route show 10.2.0.0/24").contains(router);
        assert!(eventually(by), "{}", daemons[0].ask("show ip ospf neighbor"));
    };
    let (from, to) = (source.udp("10.1.0.2:0"), sink.udp("10.2.0.2:9"));
    let counters = |name: &str| packets(&first, name);

    goes_by("10.12.0.2");
    assert!(reaches(&from, &to, "10.2.0.2:9"), "{}", program.output());
    assert!(counters("second") > 0);
    second.ip("link set dev first down");
    goes_by("10.13.0.2");
    assert!(reaches(&from, &to, "10.2.0.2:9"), "{}", program.output());
    second.ip("link set dev first up");
    goes_by("10.12.0.2");
    assert!(reaches(&from, &to, "10.2.0.2:9"), "{}", program.output());
    let (code, said) = program.end("INT");
    assert_eq!(code, Some(0), "{said}");
}

/// Returns how many frames an interface has sent.
fn packets(node: &Node, name: &str) -> u64 {
    let shown = node.ip(&format!("-s -j link show dev {name}"));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}
