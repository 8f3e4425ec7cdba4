//! A network namespace for a test, which disappears with the thread that created it.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Held while a process is started, and while no test may start one. Until it runs its program, a new process has copies of
/// all file descriptors of this one. What a test closes meanwhile stays open: sockets with their queues, BPF links.
static STARTING: Mutex<()> = Mutex::new(());

/// Runs a closure while no other test starts a process.
pub fn while_nobody_starts_a_program<T>(work: impl FnOnce() -> T) -> T {
    let _held = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a test in a new network namespace, if this process may create one. Otherwise skips it with a message, or fails in CI.
pub fn in_namespace(test: impl FnOnce() + Send) {
    let root = rustix::process::geteuid().is_root();
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(root || !ci, "in CI nothing may be skipped: run as root");
    if !root {
        eprintln!("skipped: creating a network namespace needs root");
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

/// Child processes of this thread are in the namespace too.
#[allow(deprecated)] // it is unsafe only where file descriptors or memory are unshared
fn enter_new_namespace() {
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
    // Keeps interfaces that come up from sending packets of their own.
    sysctl("net/ipv6/conf/default/disable_ipv6", "1");
}

/// Sets a kernel parameter; those below `net/` belong to the namespace.
pub fn sysctl(parameter: &str, value: &str) {
    let path = format!("/proc/sys/{parameter}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Runs `ip` with these arguments, written as one line.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Disables the VLAN offloads of an interface, as AF_XDP sockets need it.
#[cfg(feature = "bpf")]
pub fn leave_tags_on(interface: &str) {
    run("ethtool", &format!("-K {interface} rxvlan off"));
}

/// Runs a program that has to succeed.
pub fn run(program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates a veth pair for frames of up to `frame` bytes.
pub fn cable(left: &str, right: &str, frame: usize) {
    ip(&format!("link add {left} type veth peer name {right}"));
    for end in [left, right] {
        ip(&format!("link set dev {end} mtu {} up", frame - 14));
    }
    wait_until_up(&[left, right]);
}

/// Waits for the carrier: the kernel notices a little later that the other end is up as well.
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
