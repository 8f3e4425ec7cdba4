//! A table comes from BIRD to BIRD and to the kernel, and goes, while TCP flows through the router: what is forwarded does not
//! wait for what the router learns. Without the feature `bpf` large segments of a host behind veth are lost.
//!
//! `FULLVIEW_TABLE=full` takes a full view, as in `full_view.rs`.

use fullview_testnet::{Node, Program, cable, may_run};

use crate::bird::Bird;
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

#[test]
fn tcp_flows_while_a_table_comes_and_goes() {
    if !may_run(&["ip", "bird", "birdc", "setpriv", "iperf3"]) {
        return;
    }
    let (table, folder) = (table(), tempfile::tempdir().unwrap());
    let routes = write_routes(&table, folder.path());
    let lab = Lab::new();
    let upstream = upstream(&lab.router);
    let program = forward(&lab.router, "eth1,eth2,eth3", &[]);
    let transfer = Transfer::start(&lab);
    let receiver = Bird::start(&lab.router, &speaker(2, TO_KERNEL, "import all; export none"));
    let include = format!("include \"{}\";", routes.display());
    let sender = Bird::start(&upstream, &speaker(1, &include, "import none; export all"));
    receiver.wait_for("master4", table.inet.len());
    receiver.wait_for("master6", table.inet6.len());
    for family in ["ipv4", "ipv6"] {
        sender.ask(&format!("disable {family}_peer"));
    }
    receiver.wait_for("master4", 0);
    receiver.wait_for("master6", 0);
    let seconds = transfer.end();
    assert!(!seconds.is_empty() && seconds.iter().all(|rate| *rate > 0.0), "{seconds:?}");
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
}
