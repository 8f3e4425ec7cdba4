//! Takeovers that meet trouble: the running router goes on as it was, or the new one has all that it needs.

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fullview_router::control::takeover::PROTOCOL;
use fullview_router::takeover::Predecessor;
use fullview_testnet::{Program, eventually, may_run};

use crate::control::{ask, connect};
use crate::handover::{FlowLab, PROGRAMS, SOME, TAKEN, begin, socket};
use crate::kernel_filter::{FilterLab, PF};
use crate::lab::{forward, reaches};
use crate::traffic::{Receiver, Sender, lost};
use crate::trouble::batch_of;

/// More routes than fit into a small buffer of netlink.
const ROUTES: u32 = 20_000;
const PATH: &str = r#"{"path":{"address":"10.9.0.1","table":254}}"#;
/// The line of a program whose tables are ready.
const READY: &str = "interface eth1: the";

fn has_maps(program: &Program) -> bool {
    let files = fs::read_dir(format!("/proc/{}/fd", program.id())).into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| target.to_string_lossy().contains("bpf-map"))
}

/// A process that takes over and was stopped while it loaded its program: it has read the kernel's routes, and reads no
/// changes meanwhile.
fn stopped_while_it_loads(lab: &FlowLab, engine: &str) -> Program {
    let options = ["--interfaces", "eth1,eth2", "--engine", engine, "--netlink-buffer", "65536"];
    let next = lab.begin_takeover_with(&options);
    assert!(eventually(|| has_maps(&next)), "{}", next.output());
    next.signal("STOP");
    assert!(!next.output().contains(READY), "it was stopped too late: {}", next.output());
    next
}

/// The new process misses that packets are no longer dropped, as the kernel has to drop messages.
fn a_process_that_lost_messages_takes_over_with_current_tables(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new(engine);
    lab.lab.right.ip("addr add 10.9.0.1/32 dev eth0");
    lab.lab.router.ip("route add blackhole 10.9.0.0/24");
    let mut program = lab.start();
    let mut next = stopped_while_it_loads(&lab, engine);
    lab.lab.router.ip("route replace 10.9.0.0/24 via 10.0.2.2");
    lab.control.wait_until(PATH, |path| path.to_string().contains("10.0.2.2"));
    let address = |n| Ipv4Addr::from(0x1400_0000 + n);
    batch_of(ROUTES, &lab.lab.router, |n| format!("route add {}/32 via 10.0.2.2", address(n)));
    lab.control.ask("\"counters\"");
    let (from, to) = (lab.lab.left.udp("10.0.1.2:0"), lab.lab.right.udp("10.9.0.1:9"));
    assert!(reaches(&from, &to, "10.9.0.1:9"), "the running router follows");
    let (sender, receiver) = (Sender::start(from, |_| Ipv4Addr::new(10, 9, 0, 1)), Receiver::start(to));
    next.signal("CONT");
    next.wait_for(TAKEN);
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    receiver.wait_for(SOME);
    let sent = sender.end();
    assert_eq!(lost(sent, &receiver.end()), [0; 0], "{}", next.output());
    let (_, lost, twice) = lab.end();
    assert_eq!((lost, twice), (vec![], vec![]));
}

/// An interface that appears during a takeover has no program yet.
fn an_interface_that_came_during_a_failed_takeover_gets_a_program(engine: &'static str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new(engine);
    let options = [&lab.control.options()[..], &["--engine", engine, "--wait"]].concat();
    let router = forward(&lab.lab.router, "eth1,eth2,eth3", &options);
    let path = socket(&lab.control);
    let predecessor = lab.lab.router.run(move || {
        let mut predecessor = Predecessor::find(&path, None).unwrap().unwrap();
        predecessor.hand_over("eth1").unwrap();
        predecessor
    });
    lab.lab.router.ip("link add eth3 type veth peer name eth4");
    lab.lab.router.keep_tags("eth3");
    ["eth3", "eth4"].iter().for_each(|name| _ = lab.lab.router.ip(&format!("link set {name} up")));
    lab.control.wait_until("\"interfaces\"", |of| of.to_string().contains("eth3"));
    drop(predecessor);
    let has_program = || lab.lab.router.ip("link show eth3").contains("prog/xdp");
    assert!(eventually(has_program), "{}", router.output());
    lab.end();
}

with_each_program!(a_process_that_lost_messages_takes_over_with_current_tables);

#[test]
fn an_interface_that_came_during_a_failed_takeover_gets_an_xdp_program() {
    an_interface_that_came_during_a_failed_takeover_gets_a_program("xdp");
}

/// The router is too busy to answer, until the other process has gone.
#[test]
fn a_router_goes_on_if_the_other_process_does_not_learn_that_it_ends() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let mut program = lab.start();
    let mut client = connect(&socket(&lab.control));
    let begun = ask(&mut client, &begin(PROTOCOL));
    assert!(begun["error"].is_null(), "{begun}");
    program.signal("STOP");
    client.get_mut().write_all(b"\"taken-over\"\n").unwrap();
    drop(client);
    program.signal("CONT");
    program.wait_for("this one goes on");
    assert!(program.is_running());
    lab.control.ask("\"interfaces\"");
    assert!(socket(&lab.control).exists());
    lab.end();
}

#[test]
fn a_router_without_a_filter_does_not_inherit_a_fence() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let mut program = lab.start();
    let arguments = ["forward", "--takeover", "--interfaces", "eth1,eth2", "--engine", "threads"];
    let arguments = [&arguments[..], &["--bypass-filters"], &lab.control.options()].concat();
    let mut next = lab.lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
    assert!(eventually(|| !next.is_running()), "{}", next.output());
    assert!(next.output().contains("it has a filter, and this one has none"), "{}", next.output());
    assert!(program.is_running() && lab.has_fence());
    let (code, output) = program.end("TERM");
    assert_eq!((code, lab.has_fence()), (Some(0), false), "{output}");
}

#[test]
fn captured_drops_keep_their_file_until_the_takeover() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("tc");
    let folder = tempfile::tempdir().unwrap();
    let (file, beside) = (folder.path().join("drops"), folder.path().join("drops.new"));
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    let capture = ["--engine", "tc", "--capture-drops", file.to_str().unwrap()];
    let mut program = lab.lab.forward(&[&lab.control.options()[..], &capture].concat());
    let first = inode(&file);
    // It fails after its files are open.
    let more = ["--interfaces", "eth1,eth2", "--user", "no such user"];
    let mut failed = lab.begin_takeover_with(&[&more, &capture[..]].concat());
    assert!(eventually(|| !failed.is_running()));
    let (code, said) = failed.end("TERM");
    assert!(code == Some(2) && said.contains("there is no user no such user"), "{code:?} {said}");
    assert_eq!((inode(&file), inode(&beside)), (first, None));
    let mut next = lab.begin_takeover_with(&[&more[..2], &capture].concat());
    next.wait_for(TAKEN);
    assert!(eventually(|| !program.is_running() && !beside.exists()), "{}", next.output());
    assert!(inode(&file).is_some() && inode(&file) != first, "{}", next.output());
    lab.end();
}

#[test]
fn an_interface_that_the_new_process_does_not_have_is_free() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let mut lab = FlowLab::new("threads");
    let mut program = lab.start();
    let mut next = lab.begin_takeover_with(&["--interfaces", "eth1", "--engine", "threads"]);
    next.wait_for(TAKEN);
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    let mut other = forward(&lab.lab.router, "eth2", &["--engine", "threads"]);
    assert!(other.is_running() && next.is_running());
    lab.end();
}
