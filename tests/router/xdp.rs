//! The same router with its packets forwarded in the kernel.

use fullview_testnet::{Program, eventually, may_run};
use serde_json::{Value, json};

use crate::control::Control;
use crate::lab::{Lab, reaches};

/// What a veth device leaves to hardware that it has not, and how it takes frames that a program sends.
fn prepare(lab: &Lab) {
    for host in [&lab.left, &lab.right] {
        host.command("ethtool -K eth0 tx off gro on");
    }
}

/// Packets of both families that the program in the kernel has forwarded when it ends.
fn forwarded(program: Program) -> u64 {
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    // Other lines may end so, too: this one has a number before it.
    let count = |line: &str| line.strip_suffix(" forwarded")?.rsplit(' ').next()?.parse().ok();
    said.lines().find_map(count).unwrap_or_else(|| panic!("{said}"))
}

fn forwards(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    let control = Control::new();
    let program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    let (left, right) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", program.output());
    let (left6, right6) = (lab.left.udp("[2001:db8:1::2]:0"), lab.right.udp("[2001:db8:2::2]:9"));
    assert!(reaches(&left6, &right6, "[2001:db8:2::2]:9"), "{}", program.output());
    // Until the router knows of a neighbour, the kernel forwards.
    control.wait_until("\"neighbors\"", |known| {
        let known = known.to_string();
        ["10.0.1.2", "10.0.2.2", "2001:db8:1::2", "2001:db8:2::2"]
            .iter()
            .all(|address| known.contains(address))
    });
    lab.left.command("ping -c 20 -i 0.02 -W 60 10.0.2.2");
    lab.left.command("ping -c 20 -i 0.02 -W 60 2001:db8:2::2");
    // The router itself is the kernel's business, as is what has come to its last hop.
    lab.left.command("ping -c 2 -i 0.05 -W 60 10.0.1.1");
    assert!(
        lab.left.try_command("ping -c 1 -W 60 -t 1 10.0.2.2").stdout.windows(4).any(|word| word == b"live")
    );
    // Both ways of 40 exchanges, but for the first ones, while neighbours were asked for.
    let count = forwarded(program);
    assert!(count >= 60, "{count} only");
}

#[test]
fn the_driver_forwards_packets_of_both_families() {
    forwards("xdp");
}

#[test]
fn the_kernel_forwards_packets_of_both_families_behind_any_driver() {
    forwards("xdp-generic");
}

/// Routes come and go while it runs, and when it is killed the kernel forwards by them.
#[test]
fn the_program_follows_the_kernels_routes_and_goes_when_it_is_killed() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    let program = lab.forward(&["--engine", "xdp"]);
    lab.router.ip("route add 192.0.2.0/24 via 10.0.2.2");
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
    lab.router.ip("route replace blackhole 192.0.2.0/24");
    let is_silent = || !lab.left.try_command("ping -c 2 -i 0.05 -W 1 192.0.2.1").status.success();
    assert!(eventually(is_silent));
    lab.router.ip("route replace 192.0.2.0/24 via 10.0.2.2");
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
    assert!(lab.router.ip("link show eth1").contains("prog/xdp"));
    let _ = program.end("KILL");
    assert!(!lab.router.ip("link show eth1").contains("prog/xdp"));
    lab.left.command("ping -c 3 -i 0.05 -W 60 192.0.2.1");
}

/// The number of a group is used again for another one, while links, neighbours and next hops stay as they are.
#[test]
fn the_program_follows_groups_whose_next_hops_are_known() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    let right = &lab.right.mac("eth0");
    // Two stations that are not there, and two more addresses of the right host.
    let stations = [(50, "02:00:00:00:00:50"), (51, "02:00:00:00:00:51"), (52, right), (53, right)];
    for (host, mac) in stations {
        lab.router.ip(&format!("neigh replace 10.0.2.{host} lladdr {mac} dev eth2 nud permanent"));
        lab.router.ip(&format!("route add 198.51.100.{host}/32 via 10.0.2.{host}"));
    }
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    let control = Control::new();
    let _program = lab.forward(&[&["--engine", "xdp"][..], &control.options()].concat());
    let ways = r#"{"path":{"address":"192.0.2.1","table":254}}"#;
    let leads = |path: &Value, to: &str| {
        path["ways"].as_array().unwrap().iter().any(|way| way["leads"].as_str().unwrap().contains(to))
    };
    lab.router.ip("route add 192.0.2.0/24 nexthop via 10.0.2.50 nexthop via 10.0.2.51");
    control.wait_until(ways, |path| leads(path, "10.0.2.50 ") && leads(path, "10.0.2.51 "));
    // The program has the first group by now, whatever else has it look again.
    lab.router.ip("neigh replace 10.0.2.60 lladdr 02:00:00:00:00:60 dev eth2 nud permanent");
    control.wait_until("\"neighbors\"", |neighbors| neighbors.to_string().contains("\"10.0.2.60\""));
    lab.router.ip("route del 192.0.2.0/24");
    control.wait_until(ways, |path| path["ways"] == json!([]));
    lab.router.ip("route add 192.0.2.0/24 nexthop via 10.0.2.52 nexthop via 10.0.2.53");
    control.wait_until(ways, |path| leads(path, "10.0.2.52 ") && leads(path, "10.0.2.53 "));
    lab.left.command("ping -c 10 -i 0.05 -W 60 192.0.2.1");
}

/// The kernel does not see what goes to a neighbour, so it would never ask whether that one is still there.
#[test]
fn a_neighbour_with_another_address_is_found_out() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    lab.router.sysctl("ipv4/neigh/eth2/base_reachable_time_ms", "2400");
    lab.router.sysctl("ipv4/neigh/eth2/delay_first_probe_time", "1");
    let _program = lab.forward(&["--engine", "xdp"]);
    lab.left.command("ping -c 3 -i 0.05 -W 60 10.0.2.2");
    // Nobody is told of it.
    lab.right.ip("link set eth0 arp off");
    lab.right.ip("link set eth0 address 02:00:00:00:00:77");
    assert!(!lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success());
    lab.right.ip("link set eth0 arp on");
    let is_found = || lab.left.try_command("ping -c 1 -W 1 10.0.2.2").status.success();
    assert!(eventually(is_found), "{}", lab.router.ip("neigh show"));
}

/// Rules of policy routing are the kernel's: what they may concern is left to it, and comes back when they are gone.
fn leaves_rules_to_the_kernel(options: &[&str]) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    lab.right.ip("addr add 192.0.2.1/32 dev lo");
    lab.router.ip("route add 192.0.2.0/24 via 10.0.2.2");
    lab.router.ip("route add prohibit 192.0.2.0/24 table 100");
    // Of no concern: what this host sends itself, and what the main table has no route for.
    lab.router.ip("rule add iif lo lookup 100 priority 50");
    lab.router.ip("rule add lookup 100 priority 32767");
    let program = lab.forward(options);
    let reaches = || lab.left.try_command("ping -c 1 -W 1 192.0.2.1").status.success();
    assert!(eventually(reaches), "{}", program.output());
    assert!(!program.output().contains("ip rule"), "{}", program.output());
    let rules = [
        ("iif eth1 lookup 100", "packets of eth1;"),
        ("from 10.0.1.0/24 lookup 100", "packets of eth1, eth2;"),
        ("not fwmark 7 lookup 100", "packets of eth1, eth2;"),
    ];
    for (count, (rule, concerned)) in (1..).zip(rules) {
        let said = |words| eventually(|| program.output().matches(words).count() >= count);
        lab.router.ip(&format!("rule add {rule} priority 100"));
        assert!(said("rules of `ip rule` may concern"), "{rule}: {}", program.output());
        assert!(program.output().contains(concerned), "{rule}: {}", program.output());
        // It is said before it is done.
        assert!(eventually(|| !reaches() && !reaches()), "{rule}: {}", program.output());
        // The kernel forwards what no rule of it forbids.
        lab.left.command("ping -c 1 -W 60 10.0.2.2");
        lab.router.ip("rule del priority 100");
        assert!(said("no longer concern any packets"), "{rule}: {}", program.output());
        assert!(eventually(reaches), "{rule}: {}", program.output());
    }
}

#[test]
fn the_program_leaves_to_the_kernel_what_policy_rules_may_concern() {
    leaves_rules_to_the_kernel(&["--engine", "xdp"]);
}

#[test]
fn workers_leave_to_the_kernel_what_policy_rules_may_concern() {
    leaves_rules_to_the_kernel(&[]);
}

const CHECKED: &str = r#"[router]
interfaces = ["eth1", "eth2"]
engine = "xdp"
[interface.eth1]
source-check = "strict"
"#;

/// The kernel, whose own check is off, would forward them.
#[test]
fn the_program_drops_what_does_not_come_from_where_it_says() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let lab = Lab::new();
    prepare(&lab);
    for name in ["all", "eth1"] {
        lab.router.sysctl(&format!("ipv4/conf/{name}/rp_filter"), "0");
    }
    lab.left.ip("addr add 198.51.100.1/32 dev lo");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    std::fs::write(&file, CHECKED).unwrap();
    let mut program =
        lab.router.start(env!("CARGO_BIN_EXE_fullview"), &["forward", "--config", file.to_str().unwrap()]);
    program.wait_for("forwarding");
    let (honest, lying, right) =
        (lab.left.udp("10.0.1.2:0"), lab.left.udp("198.51.100.1:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&honest, &right, "10.0.2.2:9"), "{}", program.output());
    for _ in 0..20 {
        lying.send_to(b"a lie", "10.0.2.2:9").unwrap();
    }
    // What comes behind it has arrived, so it is lost.
    assert!(reaches(&honest, &right, "10.0.2.2:9"), "{}", program.output());
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("20 source_check"), "{said}");
}
