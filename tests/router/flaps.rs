//! Routes flap while packets flow: every packet arrives, by a route there was.
//!
//! `upstream` announces stable and flapping prefixes by BGP; whatever is not announced goes to `other` by the default
//! route. `FULLVIEW_TABLE=full` has 100,000 prefixes flap.

use std::net::Ipv4Addr;
use std::ops::Range;

use fullview_testnet::{Node, cable, may_run};
use serde_json::Value;

use crate::bird::Bird;
use crate::control::Control;
use crate::full_view::{TO_KERNEL, pair, speaker};
use crate::lab::{be_everybody, forward, reaches};
use crate::traffic::{Receiver, Sender, lost, twice};

const STABLE: u32 = 0x1400_0000;
const FLAPPING: u32 = 0x1e00_0000;
const STABLE_PREFIXES: u32 = 500;

/// Packets that are enough to see where they go.
const SOME: usize = 500;

fn flapping_prefixes() -> u32 {
    let full = std::env::var_os("FULLVIEW_TABLE").is_some_and(|value| value == "full");
    if full { 100_000 } else { 5_000 }
}

/// Static routes of /24 from `first` on, in a block of that name.
fn routes(name: &str, first: u32, count: u32) -> String {
    let route = |n| format!("route {}/24 via 198.18.0.77;\n", Ipv4Addr::from(first + (n << 8)));
    let all: String = (0..count).map(route).collect();
    format!("protocol static {name} {{ ipv4; {all} }}\n")
}

/// Even numbers go to stable prefixes.
fn destination(number: u32) -> Ipv4Addr {
    let stable = STABLE + ((number / 2 % STABLE_PREFIXES) << 8) + 1;
    let other = FLAPPING + ((number.wrapping_mul(2_654_435_761) % flapping_prefixes()) << 8) + 1;
    Ipv4Addr::from(if number.is_multiple_of(2) { stable } else { other })
}

#[test]
fn flapping_routes_lose_nothing_and_mislead_nothing() {
    if !may_run(&["ip", "bird", "birdc", "setpriv"]) {
        return;
    }
    let (upstream, router) = pair();
    let (source, other) = (Node::new(), Node::new());
    cable((&source, "eth0"), (&router, "eth2"));
    cable((&other, "eth0"), (&router, "eth3"));
    upstream.ip("addr add 198.18.0.77/15 dev eth0");
    router.ip("addr add 10.0.2.1/24 dev eth2");
    router.ip("addr add 10.0.3.1/24 dev eth3");
    source.ip("addr add 10.0.2.2/24 dev eth0");
    source.ip("route add default via 10.0.2.1");
    other.ip("addr add 10.0.3.2/24 dev eth0");
    router.ip("route add default via 10.0.3.2");
    be_everybody(&upstream, "eth0");
    be_everybody(&other, "eth0");

    let count = flapping_prefixes();
    let tables = routes("stable", STABLE, STABLE_PREFIXES) + &routes("flapping", FLAPPING, count);
    let sender = Bird::start(&upstream, &speaker(1, &tables, "import none; export all"));
    let receiver = Bird::start(&router, &speaker(2, TO_KERNEL, "import all; export none"));
    let all = (STABLE_PREFIXES + count) as usize;
    receiver.wait_for("master4", all);
    let control = Control::new();
    let program = forward(&router, "eth1,eth2,eth3", &control.options());
    let (from, there, elsewhere) =
        (source.udp("10.0.2.2:0"), upstream.udp("0.0.0.0:9"), other.udp("0.0.0.0:9"));
    assert!(
        reaches(&from, &there, "20.0.0.1:9") && reaches(&from, &elsewhere, "99.0.0.1:9"),
        "{}",
        program.output()
    );

    let (there, elsewhere) = (Receiver::start(there), Receiver::start(elsewhere));
    let sender_of_packets = Sender::start(from, destination);
    for _ in 0..2 {
        sender.ask("disable flapping");
        receiver.wait_for("master4", STABLE_PREFIXES as usize);
        control.wait_until("\"fib\"", |fibs| has(fibs, 0..count as usize));
        elsewhere.wait_for(SOME);
        sender.ask("enable flapping");
        receiver.wait_for("master4", all);
        control.wait_until("\"fib\"", |fibs| has(fibs, all..usize::MAX));
        there.wait_for(SOME);
    }
    let sent = sender_of_packets.end();
    let [there, elsewhere] = Receiver::end_with(sent, vec![there, elsewhere]).try_into().unwrap();
    let (_, said) = program.end("TERM");
    judge(sent, &there, &elsewhere, &said);
}

/// Whether the main table of IPv4 has so many routes, and answers by them.
fn has(fibs: &Value, routes: Range<usize>) -> bool {
    let is_main = |fib: &&Value| fib["family"] == "inet" && fib["table"] == 254;
    let main = fibs.as_array().unwrap().iter().find(is_main).unwrap();
    main["synced"] == true && routes.contains(&(main["routes"].as_u64().unwrap() as usize))
}

fn judge(sent: u32, there: &[u32], elsewhere: &[u32], said: &str) {
    println!("{sent} sent, {} came by BGP's routes, {} by the default route", there.len(), elsewhere.len());
    assert!(
        elsewhere.iter().all(|number| number % 2 == 1),
        "a packet to a stable prefix went astray: {said}"
    );
    let all = [there, elsewhere].concat();
    assert_eq!(lost(sent, &all), [0; 0], "lost: {said}");
    assert_eq!(twice(&all), [0; 0], "came twice: {said}");
    assert!(!elsewhere.is_empty(), "nothing flapped");
}
