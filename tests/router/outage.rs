//! How long packets do not flow when something happens to the program. Afterwards they flow again, and the kernel
//! forwards alone once the program has ended. The times are printed, and not judged:
//!
//!     cargo test --features bpf --test router outage -- --nocapture --test-threads 1

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullview_testnet::{Program, eventually, may_run};

use crate::control::Control;
use crate::lab::{Lab, reaches};
use crate::trouble::{batch, batch_of, network};

/// Packets that are enough to see that they flow.
const SOME: usize = 500;
const PACE: Duration = Duration::from_millis(1);

/// Packets of one flow, one every millisecond, and the times at which they arrived.
struct Probes {
    stop: Arc<AtomicBool>,
    arrived: Arc<AtomicUsize>,
    sender: JoinHandle<u32>,
    receiver: JoinHandle<Vec<(u32, Instant)>>,
}

/// What the probes saw.
struct Outage {
    /// The longest time between two arrivals.
    longest: Duration,
    lost: usize,
}

impl Probes {
    fn start(from: UdpSocket, to: UdpSocket) -> Probes {
        let (stop, arrived) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&arrived));
        let sender = thread::spawn(move || send(&from, &stopped));
        to.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let stopped = Arc::clone(&stop);
        let receiver = thread::spawn(move || receive(&to, &stopped, &count));
        Probes { stop, arrived, sender, receiver }
    }

    /// Waits until further packets have arrived.
    fn flow(&self) -> bool {
        let wanted = self.arrived.load(Ordering::Relaxed) + SOME;
        eventually(|| self.arrived.load(Ordering::Relaxed) >= wanted)
    }

    fn end(self) -> Outage {
        self.stop.store(true, Ordering::Relaxed);
        let (sent, arrived) = (self.sender.join().unwrap(), self.receiver.join().unwrap());
        let gaps = arrived.windows(2).map(|pair| pair[1].1 - pair[0].1);
        Outage { longest: gaps.max().unwrap_or_default(), lost: sent as usize - arrived.len() }
    }
}

fn send(socket: &UdpSocket, stop: &AtomicBool) -> u32 {
    let (mut number, mut due) = (0u32, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let _ = socket.send_to(&number.to_be_bytes(), "10.0.2.2:9");
        number += 1;
        due += PACE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    number
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, count: &AtomicUsize) -> Vec<(u32, Instant)> {
    let (mut buffer, mut arrived) = ([0; 64], Vec::new());
    loop {
        match socket.recv(&mut buffer) {
            Ok(4) => arrived.push((u32::from_be_bytes(buffer[..4].try_into().unwrap()), Instant::now())),
            Ok(_) => {}
            Err(_) if stop.load(Ordering::Relaxed) => return arrived,
            Err(_) => {}
        }
        count.store(arrived.len(), Ordering::Relaxed);
    }
}

/// A lab whose router runs, with its control socket.
struct Case<'l> {
    lab: &'l Lab,
    engine: &'l str,
    program: Program,
    control: Arc<Control>,
}

/// Where the program's log goes.
#[derive(Clone, Copy)]
enum Log {
    Null,
    /// A pipe that no process reads any more.
    ClosedPipe,
    /// A file without room, for the log and for captured drops.
    FullDisk,
}

/// What happens, with its name.
type Event = (&'static str, Log, fn(&mut Case<'_>));

const EVENTS: [Event; 10] = [
    ("nothing", Log::Null, |_| {}),
    ("`kill -9`", Log::Null, |case| case.program.signal("KILL")),
    ("`kill -STOP`", Log::Null, |case| case.program.signal("STOP")),
    ("the OOM killer (10 MiB more in a cgroup)", Log::Null, run_out_of_memory),
    ("a takeover by another process", Log::Null, take_over),
    ("a restart", Log::Null, restart),
    ("1,000 control clients", Log::Null, connect_clients),
    ("netlink overflow (20,000 routes added and flushed)", Log::Null, overflow),
    ("1,000 routes added, the log's pipe closed", Log::ClosedPipe, change_routes),
    ("1,000 routes added, no room for log and capture", Log::FullDisk, change_routes),
];

/// Limits what the program may allocate from now on, and makes it need more.
fn run_out_of_memory(case: &mut Case<'_>) {
    let Some(group) = memory_group(case.program.id()) else {
        println!("skipped: no memory cgroup that this process can make");
        return;
    };
    change_many(case, 200_000);
    let ended = eventually(|| !is_alive(case.program.id()));
    let killed = was_killed_in(&group);
    let _ = fs::remove_dir(&group);
    assert!(ended && killed, "the program has room for 200,000 routes: {}", group.display());
}

/// Makes a cgroup with a limit, of version 1 or 2, and moves the process to it.
fn memory_group(process: u32) -> Option<PathBuf> {
    let name = format!("fullview-outage-{process}");
    let one = PathBuf::from("/sys/fs/cgroup/memory");
    let (root, limit) =
        if one.is_dir() { (one, "memory.limit_in_bytes") } else { ("/sys/fs/cgroup".into(), "memory.max") };
    let group = root.join(name);
    fs::create_dir(&group).ok()?;
    let limited = fs::write(group.join(limit), "10485760");
    let moved = limited.and_then(|()| fs::write(group.join("cgroup.procs"), process.to_string()));
    if moved.is_err() {
        let _ = fs::remove_dir(&group);
    }
    moved.ok().map(|()| group)
}

/// Whether the kernel killed a process of the group because there was no memory.
fn was_killed_in(group: &Path) -> bool {
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    ["memory.oom_control", "memory.events"]
        .iter()
        .any(|file| read(file).lines().any(|line| line == "oom_kill 1"))
}

/// Whether a process runs, and not only waits for its parent to notice its end.
fn is_alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn change_many(case: &Case<'_>, count: u32) {
    let address = |n| Ipv4Addr::from(0x1400_0000 + n);
    batch_of(count, &case.lab.router, |n| format!("route add {}/32 via 10.0.2.2 proto 99", address(n)));
}

fn take_over(case: &mut Case<'_>) {
    let next = start(case.lab, case.engine, Log::Null, &case.control, &["--takeover"]);
    assert!(eventually(|| !case.program.is_running()), "the other process ends: {}", next.output());
    case.program = next;
}

fn restart(case: &mut Case<'_>) {
    case.program.signal("TERM");
    assert!(eventually(|| !case.program.is_running()));
    case.program = start(case.lab, case.engine, Log::Null, &case.control, &[]);
}

/// All connect and ask; the router serves some of them and refuses the others.
fn connect_clients(case: &mut Case<'_>) {
    let [_, socket] = case.control.options();
    let clients: Vec<UnixStream> = (0..1000).filter_map(|_| UnixStream::connect(socket).ok()).collect();
    clients.iter().for_each(|mut client| _ = client.write_all(b"\"counters\"\n"));
    thread::sleep(Duration::from_millis(200));
}

fn overflow(case: &mut Case<'_>) {
    change_many(case, 20_000);
    case.lab.router.ip("route flush proto 99");
    case.control.wait_until("\"counters\"", |of| of["netlink"]["resyncs"].as_u64() > Some(0));
}

fn change_routes(case: &mut Case<'_>) {
    batch(&case.lab.router, |n| format!("route add blackhole {}", network(n)));
    case.lab.left.try_command("ping -c 20 -i 0.01 -W 1 172.16.0.1");
}

/// Measures one event with a router of its own, which is killed in the end: then the kernel forwards.
fn measure(engine: &str, (name, log, event): Event) {
    let lab = Lab::new();
    for host in [&lab.left, &lab.right] {
        host.send_finished_frames("eth0");
        host.accept_redirected_frames("eth0");
    }
    lab.keep_tags();
    let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&from, &to, "10.0.2.2:9"), "the kernel forwards");
    let control = Arc::new(Control::new());
    let program = start(&lab, engine, log, &control, &[]);
    let mut case = Case { lab: &lab, engine, program, control };
    let probes = Probes::start(from, to);
    assert!(probes.flow(), "{engine}, before: {name}");
    // The program forwards them, and not the kernel.
    case.control.wait_until("\"counters\"", |of| of["sent"]["packets"].as_u64() > Some(0));
    event(&mut case);
    assert!(probes.flow(), "{engine}: packets flow after {name}");
    let Outage { longest, lost } = probes.end();
    println!("| {name} | `{engine}` | {:.0} | {lost} |", longest.as_secs_f64() * 1e3);
    case.program.signal("KILL");
    let (from, to) = (lab.left.udp("10.0.1.2:0"), lab.right.udp("10.0.2.2:9"));
    assert!(reaches(&from, &to, "10.0.2.2:9"), "{engine}: the kernel forwards after {name}");
}

fn open(log: Log) -> Stdio {
    match log {
        Log::Null => Stdio::null(),
        // The reading end is closed at once.
        Log::ClosedPipe => std::io::pipe().unwrap().1.into(),
        Log::FullDisk => File::options().write(true).open("/dev/full").unwrap().into(),
    }
}

/// Starts the router, and waits until it knows the hosts.
fn start(lab: &Lab, engine: &str, log: Log, control: &Control, options: &[&str]) -> Program {
    let [option, socket] = control.options();
    let interfaces = ["--interfaces", "eth1,eth2", "--engine", engine, option, socket];
    let more = ["--netlink-buffer", "65536", "--log-level", "debug", "--capture-drops", "/dev/full"];
    let captures = matches!(log, Log::FullDisk);
    let more = if captures { &more[..] } else { &more[..4] };
    let arguments = [&["forward"][..], &interfaces, more, options].concat();
    let program = lab.router.start_with_stderr(env!("CARGO_BIN_EXE_fullview"), &arguments, open(log));
    let answers = || UnixStream::connect(socket).is_ok();
    assert!(eventually(answers), "{}", program.output());
    control.wait_until("\"neighbors\"", |known| known.to_string().contains("10.0.2.2"));
    program
}

fn measure_all(engine: &str) {
    if !may_run(&["ip", "ping", "ethtool", "setpriv", "kill"]) {
        return;
    }
    println!("| event | engine | longest gap, ms | packets lost |");
    EVENTS.into_iter().for_each(|event| measure(engine, event));
}

#[test]
fn packets_flow_again_after_what_happens_to_threads() {
    measure_all("threads");
}

#[test]
fn packets_flow_again_after_what_happens_to_the_program_at_tc() {
    measure_all("tc");
}

#[test]
fn packets_flow_again_after_what_happens_to_the_xdp_program() {
    measure_all("xdp");
}
