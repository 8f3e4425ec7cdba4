//! A router under a flood of packets that its data path hands to the kernel keeps its BGP session, learns routes, and answers
//! ARP and echo requests, with each engine in front of the kernel. The kernel gets a limited number of the packets
//! that only cost it time, and all are counted by reason.
//!
//! ```text
//! left: BIRD, and the flood ── router: BIRD, the kernel, we ── right
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fullview_testnet::{Node, PacketSocket, Program, eventually, may_run};

use crate::bird::Bird;
#[cfg(feature = "bpf")]
use crate::control::Control;
use crate::lab::{Lab, reaches};

const PROGRAMS: [&str; 6] = ["ip", "ping", "bird", "birdc", "setpriv", "ethtool"];

/// The shortest flood: several times the hold time of the session.
const FLOOD: Duration = Duration::from_secs(15);
/// The seconds after which a silent session ends.
const HOLD: u32 = 6;

/// A BGP speaker at 10.0.1.`me` whose other routes, `late`, are announced once they are enabled.
fn speaker(me: u8, rest: &str, policy: &str) -> String {
    let other = 3 - me;
    format!(
        "router id 10.0.1.{me};\ntimeformat protocol iso long us;\n{rest}\n\
         protocol bgp peer {{ local 10.0.1.{me} as 6450{me}; neighbor 10.0.1.{other} as 6450{other}; direct;\n\
         hold time {HOLD}; keepalive time 1; connect delay time 1; connect retry time 1; error wait time 1, 2;\n\
         ipv4 {{ next hop self; {policy}; }}; }}\n"
    )
}

const LATE: &str = "protocol static late { disabled; ipv4; route 198.51.100.0/24 via 10.0.1.2; }";
const TO_KERNEL: &str = "protocol kernel { ipv4 { export all; import none; }; }";

/// The date and the second of the day at which the session was established; `None` unless it is.
fn established_at(bird: &Bird) -> Option<(String, f64)> {
    let shown = bird.ask("show protocols peer");
    let line = shown.lines().find(|line| line.starts_with("peer") && line.contains("Established"))?;
    let mut words = line.split_whitespace().skip(4);
    let (date, time) = (words.next()?, words.next()?);
    let parts = time.split(':').map(|part| part.parse::<f64>().unwrap());
    Some((date.to_owned(), parts.fold(0.0, |sum, part| 60.0 * sum + part)))
}

/// An Ethernet frame with a UDP packet from 10.0.1.2 to port 9999 of this address, without a checksum of UDP.
fn frame(mac: &[u8], to: [u8; 4], ttl: u8) -> Vec<u8> {
    let [a, b, c, d] = to;
    let mut ip = [0x45, 0, 0, 46, 0, 0, 0, 0, ttl, 17, 0, 0, 10, 0, 1, 2, a, b, c, d];
    let sum: u32 = ip.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&folded.to_be_bytes());
    let udp = [0x27, 0x0f, 0x27, 0x0f, 0, 26, 0, 0];
    [mac, &[2, 0, 0, 0, 0, 9, 8, 0], &ip, &udp, &[0; 18]].concat()
}

/// To closed ports of the router, without a route, with a last hop, and to neighbours that do not exist.
fn junk(mac: &[u8]) -> Vec<Vec<u8>> {
    let of_number = |number: u8| {
        [
            frame(mac, [10, 0, 1, 1], 64),
            frame(mac, [203, 0, 113, number], 64),
            frame(mac, [10, 0, 2, 2], 1),
            frame(mac, [10, 0, 2, 100 + number], 64),
        ]
    };
    (0..40).flat_map(of_number).collect()
}

fn station(mac: &str) -> Vec<u8> {
    mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Sends junk until it is ended.
struct Flood {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn start(from: &Node, mac: &str) -> Flood {
        let mac = station(mac);
        let (is_over, sent) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (socket, ends, counts) = (from.packet_socket("eth0"), Arc::clone(&is_over), Arc::clone(&sent));
        let thread = std::thread::spawn(move || send(socket, &junk(&mac), &ends, &counts));
        Flood { is_over, sent, thread }
    }

    /// Returns how many frames it sent.
    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

fn send(mut socket: PacketSocket, frames: &[Vec<u8>], is_over: &AtomicBool, sent: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        let taken = frames.iter().filter(|frame| socket.send(frame).is_ok()).count();
        sent.fetch_add(taken as u64, Ordering::Relaxed);
    }
}

/// Floods the router, and checks that nothing of value suffers.
fn survives(lab: &Lab) {
    let router = Bird::start(&lab.router, &speaker(1, TO_KERNEL, "import all; export none"));
    let peer = Bird::start(&lab.left, &speaker(2, LATE, "import none; export all"));
    assert!(eventually(|| established_at(&router).is_some()), "{}", router.program.output());
    let before = established_at(&router).unwrap();
    let (began, flood) = (Instant::now(), Flood::start(&lab.left, &lab.router.mac("eth1")));
    std::thread::sleep(FLOOD / 3);
    lab.left.ip("neigh flush dev eth0");
    lab.left.command("ping -c 3 -i 0.2 -W 60 10.0.1.1");
    lab.left.command("ping -c 3 -i 0.2 -W 60 2001:db8:1::1");
    peer.ask("enable late");
    router.wait_for("master4", 1);
    let (right, left) = (lab.right.udp("10.0.2.2:0"), lab.left.udp("198.51.100.1:9"));
    assert!(reaches(&right, &left, "198.51.100.1:9"), "{}", lab.router.ip("route"));
    std::thread::sleep(FLOOD.saturating_sub(began.elapsed()));
    let after = established_at(&router).unwrap();
    // BIRD computes the time of day anew for each answer; another session comes a second later at the earliest.
    let is_same = after.0 == before.0 && (after.1 - before.1).abs() < 0.5;
    assert!(is_same, "{before:?} {after:?} {} {}", router.program.output(), peer.program.output());
    let sent = flood.end();
    assert!(sent > 0);
    println!("{sent} frames in {:.1} s", began.elapsed().as_secs_f64());
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.left.ip("addr add 198.51.100.1/32 dev lo");
    lab
}

fn ends_well(program: Program) {
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    println!("{said}");
}

#[test]
fn threads_survive_junk() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = lab();
    let program = lab.forward(&["--engine", "threads"]);
    survives(&lab);
    ends_well(program);
}

#[cfg(feature = "bpf")]
#[test]
fn threads_with_xdp_sockets_survive_junk() {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = lab();
    lab.behave_as_wires();
    let program = lab.forward(&["--engine", "threads", "--port", "xdp"]);
    survives(&lab);
    ends_well(program);
}

#[cfg(feature = "bpf")]
fn a_program_survives_junk(engine: &str) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = lab();
    crate::xdp::prepare(&lab, engine);
    let control = Control::new();
    let program = lab.forward(&[&["--engine", engine][..], &control.options()].concat());
    survives(&lab);
    println!("{}", control.ask("\"counters\"")["to-kernel"]);
    ends_well(program);
}

#[cfg(feature = "bpf")]
with_each_program!(a_program_survives_junk, a_program_keeps_limits);

/// Packets of each kind.
#[cfg(feature = "bpf")]
const PACKETS: u64 = 300;

#[cfg(feature = "bpf")]
const LIMITED: &str = r#"
[router]
interfaces = ["eth1", "eth2"]
engine = "ENGINE"
[punt]
no-route = 5
ttl-expired = 5
no-neighbor = 5
[control]
socket = "SOCKET"
"#;

/// Sends packets of each kind, and checks that each is counted, and which kinds the router limits.
#[cfg(feature = "bpf")]
fn limits_are_kept(engine: &str, limited: &[&str]) {
    if !may_run(&PROGRAMS) {
        return;
    }
    let (lab, control) = (lab(), Control::new());
    crate::xdp::prepare(&lab, engine);
    let [_, socket] = control.options();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, LIMITED.replace("ENGINE", engine).replace("SOCKET", socket)).unwrap();
    let path = file.path().to_str().unwrap();
    let mut program = lab.router.start(env!("CARGO_BIN_EXE_fullview"), &["forward", "--config", path]);
    program.wait_for("forwarding");
    lab.left.command("ping -c 1 -W 60 10.0.2.2");
    control.wait_until("\"neighbors\"", |known| known.to_string().contains("10.0.2.2"));
    let mut socket = lab.left.packet_socket("eth0");
    let mac = station(&lab.router.mac("eth1"));
    let kinds = [
        ("local", frame(&mac, [10, 0, 1, 1], 64)),
        ("no_route", frame(&mac, [203, 0, 113, 1], 64)),
        ("ttl_expired", frame(&mac, [10, 0, 2, 2], 1)),
        ("no_neighbor", frame(&mac, [10, 0, 2, 100], 64)),
    ];
    for (reason, frame) in &kinds {
        for _ in 0..PACKETS {
            socket.send(frame).unwrap();
        }
        control.wait_until("\"counters\"", |counters| {
            let count = &counters["to-kernel"][reason];
            let [handed, over, lost] =
                ["handed", "limited", "lost"].map(|of| count[of].as_u64().unwrap_or(0));
            assert_eq!(lost, 0, "{counters}");
            handed + over >= PACKETS && handed > 0 && (over > 0) == limited.contains(reason)
        });
    }
    ends_well(program);
}

#[cfg(feature = "bpf")]
fn a_program_keeps_limits(engine: &str) {
    limits_are_kept(engine, &["no_route", "ttl_expired"]);
}

/// Packets whose time to live is used up stay with the kernel.
#[cfg(feature = "bpf")]
#[test]
fn threads_keep_limits() {
    limits_are_kept("threads", &["no_route", "no_neighbor"]);
}
