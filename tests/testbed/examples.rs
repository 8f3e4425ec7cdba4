//! The inventories in experiments/testbed, and wrong ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fullview_bench::remote::{draw_svg, draw_text, read_inventory};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/testbed")
}

#[test]
fn every_example_can_be_read_and_drawn() {
    let mut count = 0;
    // Beside the inventories are experiments.
    let paths = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("report-")) {
        let wiring = read_inventory(&path).unwrap();
        let (text, svg) = (draw_text(&wiring), draw_svg(&wiring));
        for node in &wiring.inventory.nodes {
            assert!(text.contains(&node.name), "{text}");
            for interface in &node.interfaces {
                let port = format!("{} {}", interface.name, interface.address);
                assert!(text.contains(&port) && svg.contains(&port), "{}: {port}\n{text}", path.display());
            }
        }
        assert_eq!(text.matches(['▶', '◀']).count(), wiring.wires.len(), "{text}");
        assert_eq!(svg.matches("<line ").count(), wiring.wires.len());
        count += 1;
    }
    assert!(count >= 4);
}

#[test]
fn two_nodes_are_drawn_with_the_way_there_and_back() {
    let text = draw_text(&read_inventory(&folder().join("two-nodes.toml")).unwrap());
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(['▶', '◀'])).collect();
    assert!(rows[0].contains('▶') && rows[1].contains('◀'), "{text}");
    let edges = |line: &str| line.chars().count();
    assert!(
        text.lines().filter(|line| line.starts_with('│')).all(|line| edges(line) == edges(rows[0])),
        "{text}"
    );
}

/// The message about an inventory with one change.
fn message(from: &str, to: &str) -> String {
    message_about("three-nodes.toml", from, to)
}

fn message_about(example: &str, from: &str, to: &str) -> String {
    let text = fs::read_to_string(folder().join(example)).unwrap();
    assert!(text.contains(from), "{from}");
    refusal(&text.replacen(from, to, 1))
}

fn refusal(inventory: &str) -> String {
    let folder_of_test = tempfile::tempdir().unwrap();
    let path = folder_of_test.path().join("lab.toml");
    fs::write(&path, inventory).unwrap();
    read_inventory(&path).expect_err("a wrong inventory").to_string()
}

/// The inventory with a wire more, between ports that it does not have yet.
fn refusal_of_wire(wire: [&str; 2], ports: &[(&str, &str)], nodes: &str) -> String {
    let mut text = fs::read_to_string(folder().join("three-nodes.toml")).unwrap();
    text = text.replace("wires = [", &format!("wires = [{wire:?}, "));
    for (beside, port) in ports {
        text = text.replace(beside, &format!("{port}, {beside}"));
    }
    refusal(&(text + nodes))
}

#[test]
fn a_wire_within_a_node_or_between_two_of_one_kind_is_refused() {
    let own = "{ name = \"eth2\", address = \"198.19.0.1/24\" }";
    let ports = [(
        own,
        "{ name = \"eth3\", address = \"192.0.2.1/24\" }, { name = \"eth4\", address = \"192.0.2.2/24\" }",
    )];
    let said = refusal_of_wire(["dut:eth3", "dut:eth4"], &ports, "");
    assert!(said.contains("lab.toml") && said.contains("take it out of `wires`"), "{said}");
    assert!(said.contains("from dut:eth3 (device under test) to dut:eth4 (device under test)"), "{said}");

    let own = "{ name = \"eth1\", address = \"198.18.0.2/24\" }";
    let ports = [(own, "{ name = \"eth2\", address = \"192.0.2.1/24\" }")];
    let second = "[[nodes]]\nname = \"second\"\nhost = \"second\"\nrole = \"sender\"\ninterfaces = [{ name = \"eth1\", address = \"192.0.2.2/24\" }]\n";
    let said = refusal_of_wire(["sender:eth2", "second:eth1"], &ports, second);
    assert!(said.contains("from sender:eth2 (sender) to second:eth1 (sender)"), "{said}");
}

#[test]
fn a_wrong_inventory_is_refused_with_the_place_and_what_to_change() {
    let said = message("role = \"dut\"", "role = \"router\"");
    assert!(
        said.contains("lab.toml") && said.contains("line ") && said.contains("unknown variant"),
        "{said}"
    );
    let said = message("role = \"dut\"", "role = \"dut\"\ncolour = \"red\"");
    assert!(said.contains("unknown field `colour`"), "{said}");
    assert!(message("role = \"receiver\"", "role = \"sender\"").contains("one interface receives"));
    assert!(message("host = \"lab-sender\"", "host = \"-oProxyCommand=reboot\"").contains("no host of ssh"));
    let said = message("[\"sender:eth1\", \"dut:eth1\"]", "[\"sender:eth7\", \"dut:eth1\"]");
    assert!(said.contains("\"sender:eth7\" is no NODE:INTERFACE"), "{said}");
    let said = message("    [\"sender:eth1\", \"dut:eth1\"],\n", "");
    assert!(said.contains("no wire leads to sender:eth1"), "{said}");
    let said = message("198.18.0.2/24", "198.18.0.2");
    assert!(said.contains("no address with a length"), "{said}");
    let said = message("core = 2", "core = 1024");
    assert!(said.contains("node sender: `core` is 1024") && said.contains("0 to 1023"), "{said}");
    assert!(message("engine = \"xdp\"", "").contains("needs one"));
    for (address, reason) in [
        ("0.0.0.0/24", "no address of a host"),
        ("127.0.0.2/8", "loopback"),
        ("224.0.0.1/24", "a multicast address"),
        ("fe80::2/64", "an address that routers do not forward"),
        ("198.18.0.1/24", "both have the address 198.18.0.1"),
        ("198.18.7.2/24", "which is not in the network 198.18.0.1/24 of dut:eth1"),
        ("198.18.0.2/024", "no address with a length"),
    ] {
        let said = message("198.18.0.2/24", address);
        assert!(said.contains(reason), "{address}: {said}");
    }
}

#[test]
fn lines_that_send_and_receive_have_to_fit_their_nodes() {
    let pkt_gen = |from: &str, to: &str| message_about("pkt-gen.toml", from, to);
    let said = pkt_gen("-R {pps} ", "");
    assert!(said.ends_with("node generator: `send`: it needs {pps}"), "{said}");
    let said = pkt_gen("-f rx -i {interface}", "-f rx -i {port}");
    assert!(said.ends_with("node receiver: `receive`: there is no {port}; there are {interface}"), "{said}");
    let said = pkt_gen("receive = \"pkt-gen", "stop = [] # \"pkt-gen");
    assert!(said.ends_with("node receiver: agent = false needs a line in `receive`"), "{said}");
    let said = pkt_gen("receive = \"pkt-gen", "send = \"pkt-gen");
    assert!(said.ends_with("node receiver: `send` is for a host that does so with agent = false"), "{said}");
    let said = pkt_gen("agent = false\n# With", "# With");
    assert!(said.ends_with("node generator: `send` is for a host that does so with agent = false"), "{said}");
    let said = pkt_gen(", mac = \"00:07:43:30:f5:b1\"", "");
    assert!(said.contains("generator, interface vcxl0: with agent = false it needs its `mac`"), "{said}");
}

/// What `fullview rates` says to more than rates of a lab without our generator.
#[test]
fn what_needs_our_own_generator_is_refused_beside_pkt_gen() {
    for (options, named) in [
        (&["--latency"][..], "--latency"),
        (&["--bursts"], "--bursts"),
        (&["--size", "imix"], "--size imix"),
        (&["--convergence"], "--convergence"),
        (&["--routes", "100"], "--routes"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
        command.arg("rates").arg("--testbed").arg(folder().join("pkt-gen.toml")).args(options);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let expected = format!("{named}: this needs fullview's own generator");
        assert!(done.status.code() == Some(2) && said.contains(&expected), "{options:?}: {said}");
    }
}
