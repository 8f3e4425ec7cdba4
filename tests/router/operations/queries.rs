//! Queries on the control socket, and clients that break its rules.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use fullview_testnet::eventually;

use super::{Operated, converse, may_operate};

#[test]
fn a_router_shows_what_it_has() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    operated.forwards_itself();
    operated.lab.router.ip("route add 10.9.0.0/16 nexthop via 10.0.2.2 weight 3 nexthop via 10.0.1.2");
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let shown = |what: &str, words: &[&str]| {
        let mut said = String::new();
        let found = eventually(|| {
            said = operated.ask(&format!("show {what}"));
            words.iter().all(|word| said.contains(word))
        });
        assert!(found, "{what}: {said}");
    };
    shown("interfaces", &["eth1", "eth2", "up", "10.0.1.1/24", "2001:db8:2::1/64"]);
    shown(
        "routes",
        &["10.8.0.0/16 blackhole", "10.0.2.2/32 via 10.0.2.2 dev eth2", "2001:db8:1::/64 dev eth1"],
    );
    shown("routes 10.9.0.0/16", &["10.9.0.0/16 group of 2"]);
    shown("routes 10.9.1.1", &["route 10.9.0.0/16", "via 10.0.2.2 dev eth2, 48/64 of the flows; neighbour"]);
    shown("routes 10.0.2.2", &["route 10.0.2.2/32", "neighbour", "on eth2"]);
    shown("routes 203.0.113.1", &["no route"]);
    shown("neighbors", &["10.0.2.2", "eth2"]);
    shown("fib", &["inet", "254", "synced", "[fib_algo]"]);
    shown("events", &["link     eth1 is up", "router"]);
    shown("counters", &["received", "forwarded"]);
    let limited = operated.ask("show routes --limit 2");
    assert_eq!(limited.lines().count(), 2, "{limited}");
    assert!(!operated.try_ask("show routes 10.9.0.1/16").0, "bits beyond the length");
    let counters = operated.json("counters");
    assert!(counters["sent"]["packets"].as_u64().unwrap() >= 1, "{counters}");
    let mode = std::fs::metadata(operated.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let socket = operated.socket();
    assert_eq!(operated.router.end("TERM").0, Some(0));
    assert!(!socket.exists(), "the router removes the socket");
}

#[test]
fn a_table_of_several_pages_is_listed_without_gaps() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    let routes: String =
        (0..2500).map(|n| format!("route add blackhole 172.{}.{}.0/24\n", 16 + n / 256, n % 256)).collect();
    let batch = operated.path("routes");
    std::fs::write(&batch, routes).unwrap();
    operated.lab.router.ip(&format!("-batch {}", batch.display()));
    let listed = || operated.ask("show routes 172.16.0.0/12");
    assert!(eventually(|| listed().lines().count() == 2500), "{}", listed().lines().count());
    let listed = listed();
    let prefixes: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        (prefixes[0], prefixes[999], prefixes[1000]),
        ("172.16.0.0/24", "172.19.231.0/24", "172.19.232.0/24")
    );
}

#[test]
fn clients_that_break_the_rules_do_not_disturb_the_router() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    let socket = operated.socket();
    assert!(
        converse(&socket, b"\xff\x00garbage\n\"nonsense\"\n", true).matches("not a request").count() == 2
    );
    assert!(converse(&socket, &vec![b'x'; 1 << 20], false).contains("longer than 65536 bytes"));
    assert_eq!(converse(&socket, b"\"interfaces\"", true), "", "a line without its end is no request");
    let several = converse(&socket, b"\"neighbors\"\n\"counters\"\n", true);
    assert_eq!(several.matches("{\"ok\":").count(), 2, "{several}");
    assert!(converse(&socket, b"\"noted\"\n", true).contains("nothing is watched"));
    // Clients that send nothing, and clients that request more than the socket holds and never read.
    let silent: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let unread: Vec<UnixStream> = (0..4)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            while stream.write_all(&b"\"fib\"\n".repeat(1000)).is_ok() {}
            stream
        })
        .collect();
    operated.forwards();
    assert!(operated.ask("show interfaces").contains("eth1"), "the router serves one more client");
    let is_refused = || {
        let _many: Vec<UnixStream> = (0..16).map(|_| UnixStream::connect(&socket).unwrap()).collect();
        converse(&socket, b"\"counters\"\n", true).contains("too many clients")
    };
    // A client that reads at once receives the refusal.
    assert!(eventually(is_refused));
    drop((silent, unread));
    assert!(eventually(|| operated.try_ask("show counters").0));
    operated.forwards();
}
