//! The network namespace of the calling thread: commands, settings and links in it. Programs that the thread starts and
//! sockets that it opens belong to the same namespace.

use std::io;
use std::process::{Command, Output};

use rustix::thread::UnshareFlags;

use crate::requirements::find;
use crate::wait::eventually;

/// Moves the calling thread to a new namespace, whose only interface is a loopback interface that is down.
#[allow(deprecated)] // `unshare` is unsafe only where it unshares file descriptors or memory
pub(crate) fn enter_new_namespace() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNET)?)
}

/// Runs a program, given with its arguments as one line, and returns its output. The program has to succeed.
pub fn command(line: &str) -> String {
    let output = try_command(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// As [`command`], for a program that may fail.
pub fn try_command(line: &str) -> Output {
    let mut words = line.split_whitespace();
    let program = words.next().expect("the line names a program");
    let path = find(program).unwrap_or_else(|| panic!("{program} is not installed"));
    Command::new(path).args(words).output().unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Runs `ip` with these arguments, given as one line. It has to succeed.
pub fn ip(arguments: &str) -> String {
    command(&format!("ip {arguments}"))
}

/// Sets a parameter of the kernel, given as its path below `/proc/sys/net`.
pub fn sysctl(name: &str, value: &str) {
    let path = format!("/proc/sys/net/{name}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// Returns the names of the interfaces.
pub fn interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Makes a cable between two interfaces of this namespace that carry frames of up to `frame` bytes.
pub fn cable(left: &str, right: &str, frame: usize) {
    ip(&format!("link add {left} type veth peer name {right}"));
    for end in [left, right] {
        ip(&format!("link set dev {end} mtu {} up", frame - 14));
    }
    wait_until_up(&[left, right]);
}

/// Waits until the interfaces can send: the kernel notices a moment later that the other end of a cable is up too.
pub fn wait_until_up(interfaces: &[&str]) {
    let is_up = |interface: &&str| {
        let shown = try_command(&format!("ip -br link show dev {interface}"));
        String::from_utf8_lossy(&shown.stdout).split_whitespace().nth(1) == Some("UP")
    };
    assert!(eventually(|| interfaces.iter().all(is_up)), "{interfaces:?} do not come up");
}

/// Makes an interface leave VLAN tags in the frames that it receives. AF_XDP sockets see no tags that it removes.
pub fn keep_tags(interface: &str) {
    command(&format!("ethtool -K {interface} rxvlan off"));
}

/// Makes the kernel finish checksums and insert VLAN tags before it sends a frame, as on a wire. A veth device otherwise
/// leaves both to hardware that it does not have.
pub fn send_finished_frames(interface: &str) {
    command(&format!("ethtool -K {interface} tx off txvlan off"));
}

/// Makes a veth device accept the frames that an XDP program redirects to its peer. It receives them by NAPI only, which
/// GRO switches on.
pub fn accept_redirected_frames(interface: &str) {
    command(&format!("ethtool -K {interface} gro on"));
}
