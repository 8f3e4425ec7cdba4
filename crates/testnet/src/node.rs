//! Hosts and routers of a test: each is a network namespace that a thread holds.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use crate::current;
use crate::namespace;
use crate::packet_socket::PacketSocket;
use crate::program::Program;
use crate::wait::{ANSWER, eventually};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace without a name. The kernel removes it when its thread and the programs in it have ended, however
/// they end, so that a killed test leaves nothing behind.
pub struct Node {
    thread_id: i32,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// Makes a host whose only interface is a loopback interface. It does not forward, and what decides how it forwards and
    /// answers does not depend on the settings of this machine.
    pub fn new() -> Node {
        let node = Node::bare();
        node.run(set_kernel_defaults);
        node.ip("link set lo up");
        node
    }

    /// Makes a namespace as the kernel makes it: loopback is down, and IPv4 begins with the settings of this machine.
    pub fn bare() -> Node {
        let (jobs, queue) = channel::<Job>();
        let (entered, thread_id) = channel();
        let thread = thread::spawn(move || {
            namespace::enter_new().expect("a new namespace");
            entered.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            queue.into_iter().for_each(|job| job());
        });
        let thread_id = thread_id.recv().expect("a new namespace; the thread's message is above");
        Node { thread_id, jobs: Some(jobs), thread: Some(thread) }
    }

    /// Returns the number that `ip link set netns` finds the namespace with: its thread's.
    pub fn id(&self) -> i32 {
        self.thread_id
    }

    /// Does something in the namespace: sockets opened and programs started belong to it.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job: Job = Box::new(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(job)));
        });
        self.jobs.as_ref().unwrap().send(job).unwrap();
        result.recv().unwrap().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs `ip` with these arguments, given as one line. It has to succeed.
    pub fn ip(&self, arguments: &str) -> String {
        self.command(&format!("ip {arguments}"))
    }

    /// Runs a program, given with its arguments as one line, and returns its output. The program has to succeed.
    pub fn command(&self, line: &str) -> String {
        let line = line.to_owned();
        self.run(move || current::command(&line))
    }

    /// As [`Node::command`], for a program that may fail.
    pub fn try_command(&self, line: &str) -> Output {
        let line = line.to_owned();
        self.run(move || current::try_command(&line))
    }

    /// Sets a parameter of the kernel, given as its path below `/proc/sys/net`.
    pub fn sysctl(&self, name: &str, value: &str) {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.run(move || current::sysctl(&name, &value));
    }

    /// Returns the MAC address of an interface.
    pub fn mac(&self, interface: &str) -> String {
        let shown = self.ip(&format!("-o link show {interface}"));
        let mac = shown.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next());
        mac.unwrap_or_else(|| panic!("no MAC address in: {shown}")).to_owned()
    }

    /// See [`current::keep_tags`].
    pub fn keep_tags(&self, interface: &str) {
        let interface = interface.to_owned();
        self.run(move || current::keep_tags(&interface));
    }

    /// See [`current::send_finished_frames`].
    pub fn send_finished_frames(&self, interface: &str) {
        let interface = interface.to_owned();
        self.run(move || current::send_finished_frames(&interface));
    }

    /// See [`current::accept_redirected_frames`].
    pub fn accept_redirected_frames(&self, interface: &str) {
        let interface = interface.to_owned();
        self.run(move || current::accept_redirected_frames(&interface));
    }

    /// Starts a program, which the kernel kills when the node is dropped.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Program {
        self.start_with(program, arguments, Stdio::piped())
    }

    /// As [`Node::start`], with this standard error, which is not part of the program's output.
    pub fn start_with_stderr(&self, program: &str, arguments: &[&str], stderr: impl Into<Stdio>) -> Program {
        self.start_with(program, arguments, stderr.into())
    }

    fn start_with(&self, program: &str, arguments: &[&str], stderr: Stdio) -> Program {
        let program = program.to_owned();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.run(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            Program::start_with_stderr(&program, &arguments, stderr)
        })
    }

    /// Opens a UDP socket. If a socket with this address was closed a moment ago, it may still exist: a program that
    /// another test starts has copies of all file descriptors between `fork` and `exec`. So this waits for the address.
    pub fn udp(&self, address: &str) -> UdpSocket {
        let mut bound = self.try_udp(address);
        eventually(|| {
            let in_use = matches!(&bound, Err(error) if error.kind() == ErrorKind::AddrInUse);
            if in_use {
                bound = self.try_udp(address);
            }
            !in_use
        });
        let socket = bound.unwrap_or_else(|error| panic!("{address}: {error}"));
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        socket
    }

    fn try_udp(&self, address: &str) -> std::io::Result<UdpSocket> {
        let address = address.to_owned();
        self.run(move || UdpSocket::bind(&address))
    }

    /// Opens a socket for the frames of an interface.
    pub fn packet_socket(&self, interface: &str) -> PacketSocket {
        let interface = interface.to_owned();
        self.run(move || PacketSocket::open(&interface))
    }
}

impl Default for Node {
    fn default() -> Node {
        Node::new()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.jobs.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sets what a new namespace copies from this machine's settings to the kernel's own defaults.
fn set_kernel_defaults() {
    current::sysctl("ipv6/conf/all/forwarding", "0");
    for setting in [
        "forwarding",
        "rp_filter",
        "arp_ignore",
        "arp_filter",
        "arp_announce",
        "arp_notify",
        "accept_local",
        "drop_gratuitous_arp",
        "ignore_routes_with_linkdown",
        "accept_source_route",
        "log_martians",
        "promote_secondaries",
        "proxy_arp",
        "route_localnet",
    ] {
        set_for_all(setting, "0");
    }
    // After `forwarding`, which the kernel lets change the first of them.
    ["accept_redirects", "secure_redirects", "send_redirects", "shared_media"]
        .iter()
        .for_each(|setting| set_for_all(setting, "1"));
    // With duplicate address detection, an address could be used only after seconds.
    current::sysctl("ipv6/conf/default/accept_dad", "0");
}

fn set_for_all(setting: &str, value: &str) {
    ["all", "default"].iter().for_each(|of| current::sysctl(&format!("ipv4/conf/{of}/{setting}"), value));
}

/// Joins an interface of one node with an interface of another one. Both interfaces are made and set up.
pub fn cable(one: (&Node, &str), other: (&Node, &str)) {
    let ((left, left_name), (right, right_name)) = (one, other);
    left.ip(&format!("link add {left_name} type veth peer name {right_name} netns {}", right.id()));
    left.ip(&format!("link set dev {left_name} up"));
    right.ip(&format!("link set dev {right_name} up"));
}
