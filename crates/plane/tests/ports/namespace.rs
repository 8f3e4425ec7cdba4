//! A network of a test's own: it goes with the thread that made it, however that ends.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Held while a program is started, or while nobody may start one. Until it runs, a new process has copies of all file
/// descriptors of this one, and what a test closes meanwhile stays: sockets with their queues, BPF links at interfaces.
static STARTING: Mutex<()> = Mutex::new(());

/// Does this while no other test starts a program.
pub fn while_nobody_starts_a_program<T>(work: impl FnOnce() -> T) -> T {
    let _held = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a test in a network namespace of its own, if this process may make one. Otherwise it says so, and fails in CI.
pub fn in_namespace(test: impl FnOnce() + Send) {
    let root = rustix::process::geteuid().is_root();
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(root || !ci, "in CI nothing may be skipped: run as root");
    if !root {
        eprintln!("skipped: needs root, to make a network namespace");
        return;
    }
    let in_a_thread = || {
        enter_new_namespace();
        test();
    };
    let ran = while_nobody_starts_a_program(|| thread::scope(|scope| scope.spawn(in_a_thread).join()));
    if let Err(panic) = ran {
        std::panic::resume_unwind(panic);
    }
}

/// What is started from this thread is in the namespace too.
#[allow(deprecated)] // it is unsafe only where file descriptors or memory are unshared
fn enter_new_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
    // Otherwise every interface that comes up sends something by itself.
    sysctl("net/ipv6/conf/default/disable_ipv6", "1");
}

/// Sets a parameter of the kernel, which is the namespace's own below `net/`.
pub fn sysctl(parameter: &str, value: &str) {
    let path = format!("/proc/sys/{parameter}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Runs `ip` with these arguments, written as one line.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Has an interface leave VLAN tags on the frames, as AF_XDP sockets need it.
#[cfg(feature = "bpf")]
pub fn leave_tags_on(interface: &str) {
    run("ethtool", &format!("-K {interface} rxvlan off"));
}

/// Runs a program, which has to succeed.
pub fn run(program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A cable between two interfaces that take frames of up to `frame` bytes.
pub fn cable(left: &str, right: &str, frame: usize) {
    ip(&format!("link add {left} type veth peer name {right}"));
    for end in [left, right] {
        ip(&format!("link set dev {end} mtu {} up", frame - 14));
    }
    wait_until_up(&[left, right]);
}

/// Until frames can go: the kernel finds out a little later that the other end is up as well.
pub fn wait_until_up(interfaces: &[&str]) {
    let is_up = |interface: &&str| {
        let shown = Command::new("ip").args(["-br", "link", "show", "dev", interface]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).split_whitespace().nth(1) == Some("UP")
    };
    let up = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        interfaces.iter().all(is_up)
    });
    assert!(up, "{interfaces:?} do not come up");
}

/// The interfaces there are.
pub fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}
