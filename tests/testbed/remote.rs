//! Hosts in namespaces, with wires between them.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use fullview_testnet::{cable, eventually, may_run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::hosts::{SshHosts, commands_in};

pub const SHORT: [&str; 10] = [
    "--json",
    "--repetitions",
    "1",
    "--trial-seconds",
    "0.02",
    "--most-seconds",
    "1.5",
    "--most-load",
    "5000",
    "--force",
];
/// Other work may take the generator's core.
const ATTEMPTS: usize = 3;

pub const PROGRAMS: [&str; 8] = ["ip", "sshd", "ssh", "scp", "ssh-keygen", "setpriv", "sha256sum", "chrt"];

pub const THREE: &str = r#"
title = "Three hosts"
ssh.config = "ssh_config"
wires = [["sender:eth1", "dut:in"], ["dut:out", "receiver:eth1"]]
[[nodes]]
name = "sender"
host = "sender"
role = "sender"
interfaces = [{ name = "eth1", address = "198.18.0.2/24" }]
[[nodes]]
name = "dut"
host = "dut"
role = "dut"
interfaces = [{ name = "in", address = "198.18.0.1/24" }, { name = "out", address = "198.19.0.1/24" }]
start = ["touch $FOLDER/started"]
stop = ["rm $FOLDER/started"]
[[nodes]]
name = "receiver"
host = "receiver"
role = "receiver"
interfaces = [{ name = "eth1", address = "198.19.0.2/24" }]
[[devices]]
name = "kernel"
kind = "kernel"
[[devices]]
name = "closed"
kind = "off"
"#;

const TWO: &str = r#"
title = "Two hosts"
ssh.config = "ssh_config"
wires = [["lab:eth1", "dut:in"], ["dut:out", "lab:eth2"]]
[[nodes]]
name = "lab"
host = "lab"
program = "$PROGRAM"
role = "sender-receiver"
interfaces = [
    { name = "eth1", address = "198.18.0.2/24", sends = true },
    { name = "eth2", address = "198.19.0.2/24" },
]
[[nodes]]
name = "dut"
host = "dut"
role = "dut"
interfaces = [{ name = "in", address = "198.18.0.1/24" }, { name = "out", address = "198.19.0.1/24" }]
[[devices]]
name = "threads"
kind = "fullview"
engine = "threads"
options = ["--quiet"]
[[devices]]
name = "lines"
kind = "command"
start = [
    "sysctl -q -w net.ipv4.conf.in.forwarding=1",
    "ip address add 198.18.0.1/24 dev in",
    "ip address add 198.19.0.1/24 dev out",
    "ip neighbor add 198.19.0.2 lladdr $MAC dev out",
]
stop = [
    "sysctl -q -w net.ipv4.conf.in.forwarding=0",
    "ip address del 198.18.0.1/24 dev in",
    "ip address del 198.19.0.1/24 dev out",
]
"#;

const TUNNEL: &str = r#"
title = "Two senders and a tunnel"
ssh.config = "ssh_config"
wires = [
    ["attacker:eth1", "dut:eth1"],
    ["client:eth1", "dut:eth2"],
    ["dut:eth3", "endpoint:eth1"],
    ["endpoint:eth2", "receiver:eth1"],
]
[[nodes]]
name = "attacker"
host = "attacker"
program = "$PROGRAM"
role = "sender"
interfaces = [{ name = "eth1", address = "198.18.0.2/24" }]
[[nodes]]
name = "client"
host = "client"
program = "$PROGRAM"
role = "sender"
interfaces = [{ name = "eth1", address = "198.18.1.2/24" }]
[[nodes]]
name = "dut"
host = "dut"
program = "$PROGRAM"
role = "dut"
interfaces = [
    { name = "eth1", address = "198.18.0.1/24" },
    { name = "eth2", address = "198.18.1.1/24" },
    { name = "eth3", address = "192.0.2.1/24" },
]
[[nodes]]
name = "endpoint"
host = "endpoint"
agent = false
role = "endpoint"
interfaces = [
    { name = "eth1", address = "192.0.2.2/24", mac = "02:00:00:00:00:01" },
    { name = "eth2", address = "198.19.0.1/24", mac = "02:00:00:00:00:02" },
]
start = [
    "ip address add 192.0.2.2/24 dev eth1",
    "ip address add 198.19.0.1/24 dev eth2",
    "ip link add lab type vxlan id 5 local 192.0.2.2 remote 192.0.2.1 dstport 4789",
    "ip address add 192.0.2.129/30 dev lab",
    "ip link set lab up",
    "sysctl -q -w net.ipv4.conf.lab.forwarding=1 net.ipv4.conf.lab.rp_filter=0",
    "ip neighbor replace 198.19.0.2 lladdr $MAC dev eth2 nud permanent",
]
stop = ["ip link del lab"]
[[nodes]]
name = "receiver"
host = "receiver"
program = "$PROGRAM"
role = "receiver"
interfaces = [{ name = "eth1", address = "198.19.0.2/24" }]
[[devices]]
name = "vxlan"
kind = "kernel"
start = [
    "ip link add lab type vxlan id 5 local 192.0.2.1 remote 192.0.2.2 dstport 4789",
    "ip address add 192.0.2.130/30 dev lab",
    "ip link set lab up",
    "ip route add 198.19.0.0/24 via 192.0.2.129",
]
stop = ["ip link del lab"]
"#;

/// Sender, device under test and receiver. Their kernels send frames of their own, which must not count.
pub fn three() -> SshHosts {
    let hosts = SshHosts::start(&["sender", "dut", "receiver"]);
    let [sender, dut, receiver] = ["sender", "dut", "receiver"].map(|name| &hosts.host(name).node);
    cable((sender, "eth1"), (dut, "in"));
    cable((dut, "out"), (receiver, "eth1"));
    write(&hosts, THREE);
    hosts
}

/// A host that sends and receives, and the device under test.
pub fn two() -> SshHosts {
    let hosts = SshHosts::start(&["lab", "dut"]);
    let [lab, dut] = ["lab", "dut"].map(|name| &hosts.host(name).node);
    cable((lab, "eth1"), (dut, "in"));
    cable((dut, "out"), (lab, "eth2"));
    write(&hosts, &TWO.replace("$MAC", &lab.mac("eth2")));
    hosts
}

/// The program without what only debuggers need, which is nearly half of what is copied to each host, and summed at both ends.
pub fn program() -> &'static str {
    static STRIPPED: LazyLock<String> = LazyLock::new(|| {
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/testbed");
        let (small, new) = (format!("{folder}/fullview"), format!("{folder}/{}", std::process::id()));
        fs::create_dir_all(folder).unwrap();
        let done = Command::new("strip")
            .args(["--strip-debug", "-o", &new, env!("CARGO_BIN_EXE_fullview")])
            .status();
        if done.is_ok_and(|status| status.success()) {
            fs::rename(&new, &small).unwrap();
            small
        } else {
            println!("the program is copied as it is: strip (binutils) failed");
            env!("CARGO_BIN_EXE_fullview").to_owned()
        }
    });
    &STRIPPED
}

pub fn write(hosts: &SshHosts, inventory: &str) {
    let folder = hosts.folder.path().display().to_string();
    let text = inventory.replace("$FOLDER", &folder).replace("$PROGRAM", program());
    fs::write(hosts.path("lab.toml"), text).unwrap();
}

/// Starts the program in the namespace from which the hosts are reached.
pub fn command(arguments: &[&str], hosts: &SshHosts) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(hosts.folder.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn fullview(hosts: &SshHosts, arguments: &[&str]) -> Output {
    let mut command = command(arguments, hosts);
    hosts.control.run(move || command.output().unwrap())
}

pub fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Measures, until every device has a search.
fn measure(hosts: &SshHosts) -> Value {
    measure_with(hosts, &[])
}

pub fn measure_with(hosts: &SshHosts, more: &[&str]) -> Value {
    for _ in 0..ATTEMPTS {
        let all = [&["rates", "--testbed", "lab.toml", "--out", "out"], &SHORT[..], more].concat();
        let goes_on = more.contains(&"--resume");
        let options: Vec<&str> =
            all.into_iter().filter(|option| !(goes_on && *option == "--force")).collect();
        let done = fullview(hosts, &options);
        hosts.assert_idle();
        let message = said(&done);
        if message.contains("holds no load") {
            continue;
        }
        assert!(matches!(done.status.code(), Some(0 | 3)), "{message}");
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let devices = report["devices"].as_array().unwrap();
        let failed: Vec<_> = devices.iter().filter(|device| device["searches"][0].is_null()).collect();
        if failed.is_empty() {
            return report;
        }
        let behind =
            |device: &&Value| device["failed"][0]["reason"].as_str().unwrap().contains("fell behind");
        assert!(failed.iter().all(behind), "{failed:#?}");
    }
    panic!("other work took the generator's core {ATTEMPTS} times");
}

pub fn mrr(report: &Value, name: &str) -> f64 {
    let device =
        report["devices"].as_array().unwrap().iter().find(|device| device["device"] == name).unwrap();
    device["searches"][0]["mrr"].as_f64().unwrap()
}

#[test]
fn three_hosts_measure_the_kernel_and_leave_everything_as_it_was() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = three();
    let dut = hosts.host("dut");
    let settings = || ["in", "out"].map(|interface| dut.setting(interface, "forwarding"));
    let before = (settings(), dut.node.ip("-o -4 address show"), dut.node.ip("neighbor show nud permanent"));
    let report = measure(&hosts);
    assert!(mrr(&report, "kernel") > 0.0, "{report}");
    assert_eq!(mrr(&report, "closed"), 0.0, "{report}");
    assert_eq!(report["testbed"]["inventory"]["title"], "Three hosts");
    let kernel = report["testbed"]["nodes"][1]["facts"]["host"]["kernel"].as_str().unwrap();
    assert!(kernel.starts_with("Linux "), "{kernel}");
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("## The test bed") && page.contains("### closed") && page.contains('▶'), "{page}");
    let trials = fs::read_to_string(hosts.path("out/trials.jsonl")).unwrap();
    assert!(trials.contains("\"device\":\"kernel\""), "{trials}");
    let after = (settings(), dut.node.ip("-o -4 address show"), dut.node.ip("neighbor show nud permanent"));
    assert_eq!(before, after);
    assert!(!hosts.path("started").exists(), "the stop lines did not run");
    assert_eq!(commands_in(&hosts.control), [""; 0], "connections are left");
}

#[test]
fn three_hosts_measure_ipv6() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = three();
    let dut = hosts.host("dut");
    let forwarding = || {
        let of = |name: &str| format!("/proc/sys/net/ipv6/conf/{name}/forwarding");
        let paths = ["all", "default", "in", "out", "mgmt"].map(of);
        dut.node.run(move || paths.map(|path| fs::read_to_string(path).unwrap().trim().to_owned()))
    };
    dut.node.run(|| fs::write("/proc/sys/net/ipv6/conf/mgmt/forwarding", "1").unwrap());
    let before = forwarding();
    let inventory = THREE.replace("198.18.0.", "2001:2:0:1::").replace("198.19.0.", "2001:2:0:2::");
    let fullview =
        "[[devices]]\nname = \"tc\"\nkind = \"fullview\"\nengine = \"tc\"\noptions = [\"--quiet\"]\n";
    write(&hosts, &(inventory.replace("/24", "/64") + fullview));
    let report = measure(&hosts);
    assert!(mrr(&report, "kernel") > 0.0 && mrr(&report, "tc") > 0.0, "{report}");
    assert_eq!(mrr(&report, "closed"), 0.0, "{report}");
    assert_eq!((&report["family"], &report["frame_bytes"]), (&"inet6".into(), &[74].into()));
    assert_eq!(before, forwarding());
    let left = dut.node.ip("-6 address show");
    assert!(before[4] == "1" && !left.contains("2001:2:"), "{before:?} {left}");
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("2001:2:0:1::1/64") && page.contains("IPv6, 74 bytes"), "{page}");
}

#[test]
fn addresses_of_two_families_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inventory = THREE.replace("198.19.0.2/24", "2001:2:0:2::2/64");
    fs::write(folder.path().join("lab.toml"), inventory).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["testbed", "draw", "lab.toml"]).current_dir(folder.path());
    let done = command.output().unwrap();
    assert!(
        done.status.code() == Some(2) && said(&done).contains("have to be of one family"),
        "{}",
        said(&done)
    );
}

#[test]
fn two_hosts_measure_our_router_and_lines_of_a_shell() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let report = measure(&hosts);
    assert!(mrr(&report, "threads") > 0.0 && mrr(&report, "lines") > 0.0, "{report}");
}

#[test]
fn a_host_that_sends_and_receives_measures_latency() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let report = measure_with(&hosts, &["--devices", "lines", "--latency"]);
    let levels = report["devices"][0]["searches"][0]["latency"].as_array().unwrap();
    assert!(!levels.is_empty(), "{report}");
    for level in levels {
        let path = &level["device"];
        let [probes, lost] = ["probes", "lost"].map(|count| path[count].as_u64().unwrap());
        assert!(lost < probes && level["link"].is_null(), "{level}");
        let [min, median] = ["min", "median"].map(|figure| path["delays"][figure].as_u64().unwrap());
        assert!(0 < min && min <= median, "{level}");
    }
    let page = fs::read_to_string(hosts.path("out/README.md")).unwrap();
    assert!(page.contains("## Latency") && !page.contains("lines: over a cable"), "{page}");
    assert!(hosts.path("out/latency-overload.svg").exists());
}

#[test]
fn latency_between_two_clocks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lab.toml"), THREE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullview"));
    command.args(["rates", "--testbed", "lab.toml", "--latency"]).current_dir(folder.path());
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(said(&done).contains("no common clock"), "{}", said(&done));
}

#[test]
fn a_killed_measurement_leaves_nothing_running_on_the_hosts() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = three();
    let dut = hosts.host("dut");
    let mut command =
        command(&["rates", "--testbed", "lab.toml", "--devices", "kernel", "--trial-seconds", "1"], &hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    let began = eventually(|| dut.setting("in", "forwarding") == "1" && hosts.path("started").exists());
    assert!(began || child.try_wait().unwrap().is_none(), "{}", said(&child.wait_with_output().unwrap()));
    // A process that begins another one is there twice for a moment.
    let folders: BTreeSet<String> =
        hosts.hosts.iter().flat_map(|host| host.work()).filter_map(|command| folder_of(&command)).collect();
    assert_eq!(folders.len(), 3, "{folders:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    hosts.assert_idle();
    assert!(eventually(|| commands_in(&hosts.control).is_empty()), "{:?}", commands_in(&hosts.control));
    assert_eq!(dut.setting("in", "forwarding"), "0");
    assert!(!hosts.path("started").exists(), "the stop lines did not run");
    let left: Vec<_> = folders.iter().filter(|folder| fs::exists(folder).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_signal_ends_a_measurement_and_what_runs_on_the_hosts() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    let mut command =
        command(&["rates", "--testbed", "lab.toml", "--devices", "lines", "--trial-seconds", "0.1"], &hosts);
    let mut child = hosts.control.run(move || command.spawn().unwrap());
    let dut = hosts.host("dut");
    let began = eventually(|| dut.setting("in", "forwarding") == "1" || child.try_wait().unwrap().is_some());
    let id = Pid::from_raw(child.id().cast_signed()).unwrap();
    assert!(began && child.try_wait().unwrap().is_none(), "{}", said(&child.wait_with_output().unwrap()));
    kill_process(id, Signal::TERM).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", said(&done));
    assert_eq!(dut.setting("in", "forwarding"), "0");
    hosts.assert_idle();
}

#[test]
fn two_senders_share_the_load_of_a_tunnel() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = SshHosts::start(&["attacker", "client", "dut", "endpoint", "receiver"]);
    let node = |name| &hosts.host(name).node;
    cable((node("attacker"), "eth1"), (node("dut"), "eth1"));
    cable((node("client"), "eth1"), (node("dut"), "eth2"));
    cable((node("dut"), "eth3"), (node("endpoint"), "eth1"));
    cable((node("endpoint"), "eth2"), (node("receiver"), "eth1"));
    write(&hosts, &TUNNEL.replace("$MAC", &node("receiver").mac("eth1")));
    let report = measure(&hosts);
    assert!(mrr(&report, "vxlan") > 0.0, "{report}");
    let tunnels = ["dut", "endpoint"].map(|name| node(name).ip("-o link show").contains("lab:"));
    assert_eq!(tunnels, [false, false], "the stop lines did not run");
}

#[test]
fn hosts_put_everything_back_when_the_connection_is_lost() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = three();
    let dut = hosts.host("dut");
    let arguments = ["rates", "--testbed", "lab.toml", "--trial-seconds", "1", "--patience", "2"];
    let mut command = command(&arguments, &hosts);
    let child = hosts.control.run(move || command.spawn().unwrap());
    assert!(eventually(|| dut.setting("in", "forwarding") == "1" && hosts.path("started").exists()));
    hosts.control.ip("link set m2 down");
    assert!(eventually(|| dut.work().is_empty()), "{:?}", dut.work());
    assert_eq!(dut.setting("in", "forwarding"), "0");
    assert!(!hosts.path("started").exists(), "the stop lines did not run");
    let done = child.wait_with_output().unwrap();
    let message = said(&done);
    assert!(matches!(done.status.code(), Some(1 | 3)), "{message}");
    assert!(message.contains("dut: the connection was lost"), "{message}");
    hosts.assert_idle();
}

/// The temporary folder of an agent.
fn folder_of(command: &str) -> Option<String> {
    let program = command.split(' ').next()?;
    let folder = program.strip_suffix("/fullview")?;
    command.contains("testbed-agent").then(|| folder.to_owned())
}

#[test]
fn a_check_finds_the_wires_and_a_missing_interface() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = three();
    let done = fullview(&hosts, &["testbed", "check", "lab.toml"]);
    let text = said(&done);
    assert_eq!(done.status.code(), Some(0), "{text}");
    assert!(
        text.contains("sender:eth1 – dut:in: right") && text.contains("dut:out – receiver:eth1: right"),
        "{text}"
    );

    let swapped = THREE.replace("\"sender:eth1\", \"dut:in\"", "\"sender:eth1\", \"dut:out\"");
    let swapped = swapped.replace("\"dut:out\", \"receiver", "\"dut:in\", \"receiver");
    // The addresses fit the wires that are named.
    let [dut_in, dut_out] = ["198.18.0.1", "198.19.0.1"];
    let swapped = swapped.replace(dut_in, "DUT").replace(dut_out, dut_in).replace("DUT", dut_out);
    write(&hosts, &swapped);
    let done = fullview(&hosts, &["testbed", "check", "lab.toml"]);
    let text = said(&done);
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains("sender:eth1 – dut:out: wrong: frames of sender:eth1 arrive at dut:in"), "{text}");

    write(&hosts, &THREE.replace("eth1", "eth9"));
    let done = fullview(&hosts, &["testbed", "check", "lab.toml", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let problem = report["nodes"][0]["problems"][0].as_str().unwrap();
    assert!(problem.contains("no interface eth9; it has mgmt, eth1"), "{report}");
    let done = fullview(&hosts, &[&["rates", "--testbed", "lab.toml"], &SHORT[..]].concat());
    assert_eq!(done.status.code(), Some(1));
    assert!(said(&done).contains("has no interface eth9"), "{}", said(&done));
    hosts.assert_idle();
}

#[test]
fn a_changed_or_unknown_host_key_is_refused() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let hosts = two();
    hosts.forge_key("dut");
    let done = fullview(&hosts, &[&["rates", "--testbed", "lab.toml"], &SHORT[..]].concat());
    let message = said(&done);
    assert_eq!(done.status.code(), Some(1), "{message}");
    assert!(message.contains("the host key of dut is not the known one"), "{message}");
    assert!(message.contains("ssh-keygen -R"), "{message}");
    fs::write(hosts.path("known_hosts"), "").unwrap();
    let done = fullview(&hosts, &["testbed", "check", "lab.toml"]);
    let message = said(&done);
    assert_eq!(done.status.code(), Some(1), "{message}");
    assert!(message.contains("the host key of lab is not known. Connect once with `ssh -F"), "{message}");
    hosts.assert_idle();
}
