//! A table comes from BIRD to BIRD or FRR and to the kernel, and goes, while TCP flows through the router: what is forwarded does
//! not wait for what the router learns. Without the feature `bpf` large segments of a host behind veth are lost.
//!
//! `FULLVIEW_TABLE=full` takes a full view, as in `full_view.rs`.

use fullview_testnet::{Node, Program, cable, eventually, may_run};

use crate::bird::Bird;
use crate::frr::Frr;
use crate::full_view::{TO_KERNEL, speaker, table, write_routes};
use crate::lab::{Lab, forward};

/// TCP from left to right, which tells each second what it sent.
struct Transfer {
    client: Program,
    _server: Program,
}

impl Transfer {
    fn start(lab: &Lab) -> Transfer {
        let mut server = lab.right.start("iperf3", &["-s", "--forceflush"]);
        server.wait_for("Server listening");
        // Until it is ended, and slowly enough that the machine has time for BGP.
        let arguments = ["-c", "10.0.2.2", "-t", "0", "-b", "200M", "-f", "k", "--forceflush"];
        let mut client = lab.left.start("iperf3", &arguments);
        client.wait_for("Kbits/sec");
        Transfer { client, _server: server }
    }

    /// The kbit/s of each second.
    fn end(self) -> Vec<f64> {
        let (_, said) = self.client.end("INT");
        let seconds = said.lines().take_while(|line| !line.starts_with("- - -"));
        let rates = seconds
            .filter_map(|line| line.split(" Kbits/sec").next()?.split_whitespace().last()?.parse().ok());
        rates.collect()
    }
}

/// Connects a host to the router, for a BGP session with the addresses of `speaker`.
fn upstream(router: &Node) -> Node {
    let upstream = Node::new();
    cable((&upstream, "eth0"), (router, "eth3"));
    for (node, name, me) in [(&upstream, "eth0", 1), (router, "eth3", 2)] {
        node.ip(&format!("addr add 198.18.255.{me}/15 dev {name}"));
        node.ip(&format!("addr add 2001:2::ff0{me}/48 dev {name} nodad"));
    }
    upstream
}

/// What takes a table from BGP to the kernel.
trait Receiver {
    /// Waits until it has given the kernel so many routes of IPv4 and of IPv6, and no others.
    fn wait_for(&self, inet: usize, inet6: usize);
}

impl Receiver for Bird {
    fn wait_for(&self, inet: usize, inet6: usize) {
        Bird::wait_for(self, "master4", inet);
        Bird::wait_for(self, "master6", inet6);
    }
}

/// A speaker of FRR in the place of `speaker(2, …)`.
const BGPD: &str = "\
router bgp 64502
 bgp router-id 198.18.255.2
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 neighbor 198.18.255.1 remote-as 64501
 neighbor 198.18.255.1 timers connect 1
 neighbor 2001:2::ff01 remote-as 64501
 neighbor 2001:2::ff01 timers connect 1
 address-family ipv4 unicast
  neighbor 198.18.255.1 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:2::ff01 activate
 exit-address-family
";

impl Receiver for Frr {
    fn wait_for(&self, inet: usize, inet6: usize) {
        for (family, count) in [("ip", inet), ("ipv6", inet6)] {
            let question = format!("show {family} route summary json");
            let there = eventually(|| self.installed(&question) == Some(count as u64));
            assert!(there, "{family}, {count}: {}", self.ask(&question));
        }
    }
}

impl Frr {
    /// How many routes of BGP the kernel has taken.
    fn installed(&self, question: &str) -> Option<u64> {
        let said: serde_json::Value = serde_json::from_str(&self.ask(question)).ok()?;
        let of_bgp = said["routes"].as_array()?.iter().find(|kind| kind["type"] == "ebgp");
        Some(of_bgp.map_or(0, |kind| kind["fib"].as_u64().unwrap_or_default()))
    }
}

/// TCP flows while a table comes to the router's speaker, and goes.
fn table_comes_and_goes(receiver: impl FnOnce(&Node) -> Box<dyn Receiver>) {
    let (table, folder) = (table(), tempfile::tempdir().unwrap());
    let routes = write_routes(&table, folder.path());
    let lab = Lab::new();
    let upstream = upstream(&lab.router);
    let program = forward(&lab.router, "eth1,eth2,eth3", &[]);
    let transfer = Transfer::start(&lab);
    let receiver = receiver(&lab.router);
    let include = format!("include \"{}\";", routes.display());
    let sender = Bird::start(&upstream, &speaker(1, &include, "import none; export all"));
    receiver.wait_for(table.inet.len(), table.inet6.len());
    for family in ["ipv4", "ipv6"] {
        sender.ask(&format!("disable {family}_peer"));
    }
    receiver.wait_for(0, 0);
    let seconds = transfer.end();
    assert!(!seconds.is_empty() && seconds.iter().all(|rate| *rate > 0.0), "{seconds:?}");
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn tcp_flows_while_a_table_comes_to_bird_and_goes() {
    if may_run(&["ip", "bird", "birdc", "setpriv", "iperf3"]) {
        let policy = "import all; export none";
        table_comes_and_goes(|router| Box::new(Bird::start(router, &speaker(2, TO_KERNEL, policy))));
    }
}

#[test]
fn tcp_flows_while_a_table_comes_to_frr_and_goes() {
    if may_run(&["ip", "bird", "birdc", "setpriv", "iperf3", "zebra", "bgpd", "vtysh"]) {
        table_comes_and_goes(|router| Box::new(Frr::start(router, "bgpd", BGPD)));
    }
}
