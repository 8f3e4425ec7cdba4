//! How long packets of a multipath route do not flow when one of its links fails: through the kernel alone, and through
//! each engine, without and with many changes of routes at the same time. The router leaves the failed link, which every engine
//! has noted within the kernel; the times are printed, and not judged:
//!
//!     cargo test --features bpf --test router failover -- --nocapture --test-threads 1

use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullview_testnet::{Program, cable, eventually, may_run};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::control::Control;
use crate::lab::{Lab, forward};

/// Packets in each millisecond.
const BURST: u32 = 10;
const PACE: Duration = Duration::from_millis(1);
/// The packets go to so many addresses in turn, so that about half of them use each link.
const ADDRESSES: u32 = 64;
/// So many packets in a row without a loss show that no packet uses a failed link.
const FLOWING: u32 = 8 * ADDRESSES;
/// Routes that a batch adds while the link fails, and the one after which the link fails.
const ROUTES: u32 = 200_000;
const EARLY: u32 = 20_000;

/// Numbered packets, when each was sent, and which arrived.
struct Probes {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Vec<Instant>>>,
    arrived: Arc<Mutex<Vec<u32>>>,
    threads: [JoinHandle<()>; 2],
}

impl Probes {
    fn start(lab: &Lab) -> Probes {
        let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("0.0.0.0:9"));
        set_socket_recv_buffer_size_force(&to, 16 << 20).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (sent, arrived) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (stopped, times) = (Arc::clone(&stop), Arc::clone(&sent));
        let sender = thread::spawn(move || send(&from, &stopped, &times));
        let (stopped, numbers) = (Arc::clone(&stop), Arc::clone(&arrived));
        let receiver = thread::spawn(move || receive(&to, &stopped, &numbers));
        Probes { stop, sent, arrived, threads: [sender, receiver] }
    }

    /// Waits until packets that are sent from now on arrive by the dozen without a loss.
    fn flow(&self) -> bool {
        let begin = self.sent.lock().unwrap().len() as u32;
        eventually(|| self.has_gapless_end(begin))
    }

    /// Whether all of the latest packets have arrived, none of which was sent before `begin`.
    fn has_gapless_end(&self, begin: u32) -> bool {
        let arrived = self.arrived.lock().unwrap();
        let Some(first) = arrived.last().and_then(|last| last.checked_sub(FLOWING)) else { return false };
        // Packets of two links may change places.
        let latest: HashSet<_> = arrived.iter().rev().take(2 * FLOWING as usize).collect();
        first >= begin && (first..first + FLOWING).all(|number| latest.contains(&number))
    }

    /// Ends the threads; returns the time from `failure` until the last loss, and the number of packets lost since then.
    fn end(self, failure: Instant) -> (Duration, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let arrived: HashSet<u32> = self.arrived.lock().unwrap().iter().copied().collect();
        let sent = self.sent.lock().unwrap();
        let since = (0..).zip(sent.iter()).filter(|(_, time)| **time >= failure);
        let lost: Vec<_> = since.filter(|(number, _)| !arrived.contains(number)).collect();
        (lost.last().map_or(Duration::ZERO, |(_, time)| **time - failure), lost.len())
    }
}

fn send(socket: &UdpSocket, stop: &AtomicBool, times: &Mutex<Vec<Instant>>) {
    let (mut number, mut due) = (0u32, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BURST {
            let address = Ipv4Addr::new(172, 31, 9, (number % ADDRESSES) as u8);
            times.lock().unwrap().push(Instant::now());
            let _ = socket.send_to(&number.to_be_bytes(), (address, 9));
            number += 1;
        }
        // A thread that had no processor for a while does not send all that it missed at once.
        due = (due + PACE).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Receives until `stop` is set and no packet has arrived for a while.
fn receive(socket: &UdpSocket, stop: &AtomicBool, numbers: &Mutex<Vec<u32>>) {
    let mut buffer = [0; 64];
    loop {
        match socket.recv(&mut buffer) {
            Ok(4) => numbers.lock().unwrap().push(u32::from_be_bytes(buffer[..4].try_into().unwrap())),
            Ok(_) => {}
            Err(_) if stop.load(Ordering::Relaxed) => return,
            Err(_) => {}
        }
    }
}

/// Makes a lab with a second link to the host on the right, and a route that uses both links.
fn two_links() -> Lab {
    let lab = Lab::new();
    cable((&lab.right, "eth1"), (&lab.router, "eth3"));
    lab.router.ip("addr add 10.0.3.1/24 dev eth3");
    lab.right.ip("addr add 10.0.3.2/24 dev eth1");
    lab.router.ip("route add 172.31.9.0/24 nexthop via 10.0.2.2 nexthop via 10.0.3.2");
    lab.right.ip("route add local 172.31.9.0/24 dev lo");
    lab.right.ip("route add 10.0.1.0/24 nexthop via 10.0.2.1 nexthop via 10.0.3.1");
    for (host, interface) in [(&lab.left, "eth0"), (&lab.right, "eth0"), (&lab.right, "eth1")] {
        host.send_finished_frames(interface);
        host.accept_redirected_frames(interface);
    }
    ["eth1", "eth2", "eth3"].iter().for_each(|interface| lab.router.keep_tags(interface));
    lab
}

/// How many frames the host on the right has received from the second link.
fn frames_of_second_link(lab: &Lab) -> u64 {
    let shown: serde_json::Value = serde_json::from_str(&lab.right.ip("-s -j link show eth1")).unwrap();
    shown[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
}

/// Starts the router, unless the kernel forwards alone, and waits until it knows the hosts.
fn start(lab: &Lab, engine: &str, control: &Control) -> Option<Program> {
    if engine == "kernel" {
        return None;
    }
    let options = [&["--engine", engine][..], &control.options()].concat();
    let program = forward(&lab.router, "eth1,eth2,eth3", &options);
    control.wait_until("\"neighbors\"", |known| {
        ["10.0.2.2", "10.0.3.2"].iter().all(|address| known.to_string().contains(address))
    });
    Some(program)
}

/// Starts to add many routes, and waits until the kernel has some of them.
fn add_routes(lab: &Lab, folder: &tempfile::TempDir) -> Program {
    let (file, network) = (folder.path().join("batch"), |n: u32| Ipv4Addr::from(0x1400_0000 + n));
    let line = |n: u32| format!("route add {}/32 via 10.0.1.2\n", network(n));
    std::fs::write(&file, (0..ROUTES).map(line).collect::<String>()).unwrap();
    let batch = lab.router.start("ip", &["-batch", file.to_str().unwrap()]);
    let is_early = || !lab.router.ip(&format!("route show {}/32", network(EARLY))).is_empty();
    assert!(eventually(is_early), "{}", batch.output());
    batch
}

/// Has the second link fail while packets flow by both.
fn measure(engine: &str, is_storm: bool) {
    let (lab, control, folder) = (two_links(), Control::new(), tempfile::tempdir().unwrap());
    let probes = Probes::start(&lab);
    assert!(probes.flow(), "the kernel forwards");
    let program = start(&lab, engine, &control);
    let before = frames_of_second_link(&lab);
    assert!(probes.flow(), "{engine}: packets flow by both links");
    assert!(eventually(|| frames_of_second_link(&lab) - before > u64::from(FLOWING) / 8));
    let mut batch = is_storm.then(|| add_routes(&lab, &folder));
    let failure = Instant::now();
    lab.router.ip("link set dev eth3 down");
    let storm = batch.as_mut().map_or("none", |batch| if batch.is_running() { "continues" } else { "over" });
    assert!(probes.flow(), "{engine}: packets flow by the other link");
    let (outage, lost) = probes.end(failure);
    println!("| `{engine}` | {storm} | {:.1} | {lost} |", outage.as_secs_f64() * 1e3);
    if let Some(program) = program {
        let (code, said) = program.end("TERM");
        assert_eq!(code, Some(0), "{said}");
        let has_types = Path::new("/sys/kernel/btf/vmlinux").exists();
        assert_eq!(said.contains("when the kernel has reported them, not at once"), !has_types, "{said}");
    }
}

fn measure_both(engine: &str) {
    if may_run(&["ip", "ethtool", "setpriv", "kill"]) {
        println!("| engine | changes of routes | from the failure to the last loss, ms | packets lost |");
        [false, true].into_iter().for_each(|is_storm| measure(engine, is_storm));
    }
}

#[test]
fn the_kernel_alone_leaves_a_failed_link() {
    measure_both("kernel");
}

#[test]
fn threads_leave_a_failed_link() {
    measure_both("threads");
}

#[test]
fn the_program_at_tc_leaves_a_failed_link() {
    measure_both("tc");
}

#[test]
fn the_program_at_xdp_leaves_a_failed_link() {
    measure_both("xdp");
}
