//! Rules of policy routing in each engine: which packets the router itself forwards by another table than the main one, and
//! which it leaves to the kernel.

use std::net::UdpSocket;
use std::time::Duration;

use fullview_testnet::{Program, eventually, may_run};

use crate::control::Control;
use crate::lab::Lab;

const PROGRAMS: [&str; 4] = ["ip", "ping", "ethtool", "setpriv"];

/// A network on the right that only other tables than the main one have routes to.
const THERE: &str = "192.0.2.1";
const THERE6: &str = "2001:db8:9::1";

/// The lab with a router that runs, and sockets to send probes by.
struct Ruled {
    lab: Lab,
    control: Control,
    program: Program,
    left: UdpSocket,
    right: UdpSocket,
    left6: UdpSocket,
    right6: UdpSocket,
}

/// What became of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    ByRouter,
    ByKernel,
    Lost,
}

impl Ruled {
    fn new(engine: &str) -> Ruled {
        let (lab, control) = (Lab::new(), Control::new());
        if engine != "tc" {
            for host in [&lab.left, &lab.right] {
                host.send_finished_frames("eth0");
                host.accept_redirected_frames("eth0");
            }
        }
        lab.right.ip(&format!("addr add {THERE}/32 dev lo"));
        lab.right.ip(&format!("addr add {THERE6}/128 dev lo nodad"));
        for table in [100, 200] {
            lab.router.ip(&format!("route add unreachable 198.18.0.0/15 table {table}"));
            lab.router.ip(&format!("-6 route add unreachable 2001:2::/48 table {table}"));
        }
        lab.router.ip("route add default via 10.0.2.2 table 100");
        lab.router.ip("-6 route add default via 2001:db8:2::2 table 100");
        lab.router.ip("route add blackhole default table 200");
        lab.left.command("ping -c 1 -W 60 10.0.2.2");
        lab.left.command("ping -c 1 -W 60 2001:db8:2::2");
        let program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
        let known = ["10.0.2.2", "2001:db8:2::2"].map(|address| format!("\"{address}\""));
        control.wait_until("\"neighbors\"", |all| known.iter().all(|it| all.to_string().contains(it)));
        let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp(&format!("{THERE}:9")));
        let (left6, right6) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp(&format!("[{THERE6}]:9")));
        for socket in [&right, &right6] {
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        }
        Ruled { lab, control, program, left, right, left6, right6 }
    }

    /// How many packets the router has sent to the right.
    fn sent(&self) -> u64 {
        let interfaces = self.control.ask("\"interfaces\"");
        let right = interfaces.as_array().unwrap().iter().find(|link| link["name"] == "eth2").unwrap();
        right["sent"]["packets"].as_u64().unwrap()
    }

    /// What becomes of some probes, all of which have the same fate.
    fn fate(&self, inet6: bool) -> Option<Fate> {
        const PROBES: u64 = 5;
        let (from, to, address) = match inet6 {
            false => (&self.left, &self.right, format!("{THERE}:9")),
            true => (&self.left6, &self.right6, format!("[{THERE6}]:9")),
        };
        let before = self.sent();
        let (mut arrived, mut buffer) = (0, [0; 16]);
        for _ in 0..PROBES {
            // An ICMP error to an earlier probe may be reported here.
            let _ = from.send_to(b"probe", &address);
            arrived += u64::from(to.recv(&mut buffer).is_ok());
        }
        // The counters of threads follow a little later.
        let by_router = || self.sent() - before;
        match arrived {
            PROBES if eventually_soon(|| by_router() >= PROBES) => Some(Fate::ByRouter),
            PROBES if by_router() == 0 => Some(Fate::ByKernel),
            0 => Some(Fate::Lost),
            _ => None,
        }
    }

    fn check(&self, inet6: bool, wanted: Fate, because: &str) {
        let mut last = None;
        let is_so = eventually(|| {
            last = self.fate(inet6);
            last == Some(wanted)
        });
        assert!(is_so, "{because}: {last:?}, not {wanted:?}: {}", self.program.output());
    }

    fn rules(&self, verb: &str, rules: &[&str]) {
        for rule in rules {
            let (family, rule) = rule.split_once("-6 ").map_or(("-4", *rule), |(_, rule)| ("-6", rule));
            self.lab.router.ip(&format!("{family} rule {verb} {rule}"));
        }
    }

    fn end(self) {
        let (code, said) = self.program.end("TERM");
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Whether it holds within a second.
fn eventually_soon(is_so: impl Fn() -> bool) -> bool {
    (0..10).any(|_| {
        let holds = is_so();
        if !holds {
            std::thread::sleep(Duration::from_millis(100));
        }
        holds
    })
}

/// Rules that lead the probes to table 100.
const LEADING: [&[&str]; 6] = [
    &["iif eth1 lookup 100 pref 100"],
    &["from 10.0.1.0/24 to 192.0.2.0/24 lookup 100 pref 100"],
    &["not from 10.0.2.0/24 lookup 100 pref 100"],
    &["not fwmark 7 lookup 100 pref 100"],
    &["from 10.0.1.2 goto 300 pref 100", "lookup 200 pref 200", "lookup 100 pref 300"],
    &[
        "fwmark 7 lookup 200 pref 90",
        "nop pref 95",
        "to 192.0.2.0/24 lookup 300 pref 96",
        "lookup 100 pref 100",
    ],
];

fn the_router_looks_up_in_the_tables_that_rules_choose(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let ruled = Ruled::new(engine);
    ruled.check(false, Fate::Lost, "the main table has no route");
    for rules in LEADING {
        ruled.rules("add", rules);
        ruled.check(false, Fate::ByRouter, &rules.join("; "));
        ruled.rules("del", rules);
        ruled.check(false, Fate::Lost, "no rule is left");
    }
    ruled.lab.router.ip("route add 192.0.2.0/24 dev eth2 table 100");
    ruled.rules("add", LEADING[0]);
    ruled.check(false, Fate::ByRouter, "a station of a network that only this table has");
    ruled.rules("del", LEADING[0]);
    ruled.check(true, Fate::Lost, "no rule is of IPv6");
    let inet6 = ["-6 from 2001:db8:1::/64 lookup 100 pref 100"];
    ruled.rules("add", &inet6);
    ruled.check(true, Fate::ByRouter, "a rule of IPv6");
    ruled.check(false, Fate::Lost, "which is none of IPv4");
    let said = ruled.program.output();
    assert!(!said.contains("ip rule"), "{said}");
    ruled.end();
}

/// A table without a route to the destination, or with one that says so, leads to the next rule.
fn a_table_without_a_route_leads_to_the_next_rule(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let ruled = Ruled::new(engine);
    ruled.rules("add", &["from 10.0.1.0/24 lookup 100 pref 100", "iif eth1 lookup 200 pref 200"]);
    ruled.check(false, Fate::ByRouter, "the default route of table 100");
    ruled.lab.router.ip(&format!("route add throw {THERE} table 100"));
    ruled.check(false, Fate::Lost, "the black hole of table 200");
    ruled.lab.router.ip("route del blackhole default table 200");
    ruled.lab.router.ip(&format!("route add {THERE} via 10.0.2.2"));
    ruled.check(false, Fate::ByRouter, "the main table");
    ruled.lab.router.ip("route replace blackhole default table 200");
    ruled.check(false, Fate::Lost, "the black hole is there again");
    ruled.rules("del", &["pref 200"]);
    ruled.check(false, Fate::ByRouter, "no rule leads there");
    ruled.end();
}

/// The two rules that WireGuard's wg-quick makes: the main table decides, except by its default route.
const OF_TUNNEL: [&str; 2] =
    ["lookup main suppress_prefixlength 0 pref 100", "not fwmark 0xca6c lookup 100 pref 101"];

fn default_routes_of_the_main_table_may_not_count(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let ruled = Ruled::new(engine);
    let ip = |line: &str| ruled.lab.router.ip(line);
    ip("route add default via 10.0.1.2");
    ip("-6 route add default via 2001:db8:1::2");
    ruled.check(false, Fate::Lost, "the main table leads back");
    ruled.rules("add", &OF_TUNNEL);
    ruled.rules("add", &OF_TUNNEL.map(|rule| format!("-6 {rule}")).each_ref().map(String::as_str));
    ruled.check(false, Fate::ByRouter, "the default route of table 100");
    ruled.check(true, Fate::ByRouter, "the same for IPv6");
    ip("route replace default nexthop via 10.0.1.2 nexthop via 10.0.1.3");
    ruled.check(false, Fate::ByRouter, "groups do not count either");
    ip("route replace default via 10.0.1.2 table 100");
    ruled.check(false, Fate::Lost, "table 100 leads back");
    ip(&format!("route add {THERE} via 10.0.2.2"));
    ruled.check(false, Fate::ByRouter, "other routes of the main table count");
    ip(&format!("route del {THERE}"));
    ip("route replace default via 10.0.2.2 table 100");
    ip("route replace blackhole default");
    ruled.check(false, Fate::Lost, "a route that drops packets counts");
    ip("nexthop add id 9 blackhole");
    ip("route del blackhole default");
    ruled.check(false, Fate::ByRouter, "the main table has no default route");
    ip("route add default nhid 9");
    ruled.check(false, Fate::Lost, "so does one by an object that drops packets");
    ip("nexthop replace id 9 via 10.0.1.2 dev eth1");
    ruled.check(false, Fate::ByRouter, "which leads back now, and does not count");
    let said = ruled.program.output();
    assert!(!said.contains("ip rule"), "{said}");
    ruled.end();
}

/// Threads follow rules by protocol and ports; the program in the kernel leaves the packets that they may select to the kernel.
fn rules_may_ask_for_protocol_and_ports(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let ruled = Ruled::new(engine);
    let fate = if engine == "threads" { Fate::ByRouter } else { Fate::ByKernel };
    let cases = [
        ("ipproto udp dport 9", fate),
        ("from 10.0.1.0/24 ipproto udp", fate),
        ("not ipproto tcp", fate),
        ("iif eth1 ipproto udp dport 1-20", fate),
        ("ipproto udp dport 10-20", Fate::Lost),
        ("ipproto udp sport 9", Fate::Lost),
        ("ipproto tcp dport 9", Fate::Lost),
    ];
    for (rule, fate) in cases {
        ruled.rules("add", &[&format!("{rule} lookup 100 pref 100")]);
        ruled.check(false, fate, rule);
        ruled.rules("del", &["pref 100"]);
        ruled.check(false, Fate::Lost, "no rule is left");
    }
    ruled.rules("add", &["-6 ipproto udp dport 9 lookup 100 pref 100"]);
    ruled.check(true, fate, "a rule of IPv6");
    ruled.end();
}

/// Rules that the router does not apply leave packets to the kernel: those that they may select.
fn what_the_router_does_not_know_is_left_to_the_kernel(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let ruled = Ruled::new(engine);
    ruled.lab.router.ip(&format!("route add {THERE} via 10.0.2.2"));
    ruled.check(false, Fate::ByRouter, "the main table");
    let rules = [
        ("from 10.0.1.0/24 tos 4 lookup 100", Fate::ByKernel),
        ("iif eth1 tos 4 lookup 100", Fate::ByKernel),
        ("not from 10.0.2.0/24 tos 4 lookup 100", Fate::ByKernel),
        ("from 10.0.1.0/24 lookup main suppress_prefixlength 32", Fate::ByKernel),
        ("from 10.0.1.2 blackhole", Fate::Lost),
        ("to 192.0.2.0/24 prohibit", Fate::Lost),
        ("iif eth1 unreachable", Fate::Lost),
        ("from 10.0.3.0/24 tos 4 lookup 100", Fate::ByRouter),
    ];
    for (count, (rule, fate)) in (1..).zip(rules) {
        ruled.rules("add", &[&format!("{rule} pref 100")]);
        let said = |words: &str| eventually(|| ruled.program.output().matches(words).count() >= count);
        assert!(said("some rules of `ip rule` may concern packets of eth1"), "{rule}");
        ruled.check(false, fate, rule);
        ruled.rules("del", &["pref 100"]);
        assert!(said("applies all rules of `ip rule`"), "{rule}: {}", ruled.program.output());
        ruled.check(false, Fate::ByRouter, "no rule is left");
    }
    ruled.end();
}

macro_rules! with_each_engine {
    ($($test:ident),* $(,)?) => {
        mod in_threads {
            $(#[test] fn $test() { super::$test("threads"); })*
        }
        mod at_tc {
            $(#[test] fn $test() { super::$test("tc"); })*
        }
        mod at_xdp {
            $(#[test] fn $test() { super::$test("xdp"); })*
        }
    };
}

with_each_engine!(
    the_router_looks_up_in_the_tables_that_rules_choose,
    a_table_without_a_route_leads_to_the_next_rule,
    default_routes_of_the_main_table_may_not_count,
    rules_may_ask_for_protocol_and_ports,
    what_the_router_does_not_know_is_left_to_the_kernel,
);
