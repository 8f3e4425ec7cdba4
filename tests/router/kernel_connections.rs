//! A program in the kernel forwards plain segments of established connections, whole frames of several segments too, and not a
//! moment longer than the filter would.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use fullview_testnet::{ANSWER, eventually, may_run};
use serde_json::Value;

use crate::kernel_filter::{IPFW, PF};
use crate::kernel_flows::FlowLab;

const PROGRAMS: [&str; 3] = ["ip", "setpriv", "nft"];

/// As `PF`, with states that do not compare windows.
const SLOPPY: &str = "block all
pass in on eth1 inet proto tcp to port 4080 keep state (sloppy)
pass out on eth2 inet proto tcp to port 4080 keep state (sloppy)
";

const STATELESS: &str = "block all
pass in on eth1 inet proto tcp to port 4080 no state
pass out on eth2 inet proto tcp to port 4080 no state
pass in on eth2 inet proto tcp from port 4080 no state
pass out on eth1 inet proto tcp from port 4080 no state
";

/// Segments of this many bytes are the longest.
const SEGMENT: usize = 1460;

/// Both ends of a connection from the left host to the right one.
struct Connection {
    near: TcpStream,
    far: TcpStream,
}

impl Connection {
    fn new(lab: &FlowLab) -> Connection {
        let hosts = &lab.lab.lab;
        let listener = hosts.right.run(|| TcpListener::bind("10.0.2.2:4080").unwrap());
        let connect = || TcpStream::connect_timeout(&"10.0.2.2:4080".parse().unwrap(), ANSWER);
        let near = hosts.left.run(connect).unwrap();
        let (far, _) = listener.accept().unwrap();
        [&near, &far].iter().for_each(|end| end.set_nodelay(true).unwrap());
        Connection { near, far }
    }

    /// Carries bytes there and back.
    fn carry(&self, bytes: usize) {
        transfer(&self.near, &self.far, bytes);
        transfer(&self.far, &self.near, bytes);
    }

    /// Whether a byte from the near end arrives within this time.
    fn delivers(&mut self, patience: Duration) -> bool {
        self.far.set_read_timeout(Some(patience)).unwrap();
        let _ = self.near.write_all(&[1]);
        self.far.read_exact(&mut [0]).is_ok()
    }
}

fn transfer(from: &TcpStream, to: &TcpStream, bytes: usize) {
    let sent: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
    let mut received = vec![0; bytes];
    let (mut from, mut to) = (from, to);
    to.set_read_timeout(Some(ANSWER)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&sent).unwrap());
        to.read_exact(&mut received).unwrap();
    });
    assert!(sent == received);
}

/// Carries bytes through the router, and returns how many packets the program forwarded, once they are more than so many.
fn carried(lab: &FlowLab, bytes: usize, least: u64) -> u64 {
    Connection::new(lab).carry(bytes);
    // Counts are taken a few times a second.
    std::thread::sleep(Duration::from_millis(300));
    assert!(eventually(|| lab.in_kernel() >= least), "{}", lab.filter());
    lab.in_kernel()
}

#[test]
fn connections_pass_in_the_kernel() {
    const SEGMENTS: usize = 200;
    if !may_run(&PROGRAMS) {
        return;
    }
    for (language, rules) in [("pf", PF), ("pf", SLOPPY), ("ipfw", IPFW), ("pf", STATELESS)] {
        let lab = FlowLab::new(language, rules, "packet", 100);
        carried(&lab, SEGMENTS * SEGMENT, SEGMENTS as u64);
        assert_eq!(lab.program.end("TERM").0, Some(0));
    }
}

#[test]
fn connections_pass_in_the_driver() {
    const SEGMENTS: usize = 200;
    if may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        let lab = FlowLab::new("pf", PF, "xdp", 100);
        carried(&lab, SEGMENTS * SEGMENT, SEGMENTS as u64);
    }
}

/// What a host leaves to its card to cut passes in one piece.
#[test]
fn frames_of_several_segments_pass_whole() {
    const BYTES: usize = 4_000_000;
    if !may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        return;
    }
    let lab = with_large_frames(FlowLab::new("pf", PF, "packet", 100));
    let packets = carried(&lab, BYTES, 1) as usize;
    assert!(packets < 2 * BYTES / SEGMENT, "{packets} packets, {}", lab.filter());
    assert_eq!(dropped(&lab), 0);
}

/// Leaves it to the cards of the hosts to cut.
fn with_large_frames(lab: FlowLab) -> FlowLab {
    for host in [&lab.lab.lab.left, &lab.lab.lab.right] {
        host.command("ethtool -K eth0 tx on tso on gso on");
    }
    lab
}

/// The frames that were dropped for their length or kind, and the segments that states refused.
fn dropped(lab: &FlowLab) -> u64 {
    let counters: Value = serde_json::from_str(&lab.ask("show counters --json")).unwrap();
    let reasons = ["several_packets", "frame_too_long", "frame_damaged", "filter_state"];
    reasons.iter().map(|reason| counters["drops"][reason].as_u64().unwrap()).sum()
}

/// A worker forwards the segments of a frame one by one.
#[test]
fn frames_of_several_segments_are_cut_for_workers() {
    const BYTES: usize = 1_000_000;
    if !may_run(&["ip", "setpriv", "nft", "ethtool"]) {
        return;
    }
    for (language, rules) in [("pf", PF), ("ipfw", IPFW), ("pf", STATELESS)] {
        let lab = with_large_frames(FlowLab::new(language, rules, "packet", 0));
        Connection::new(&lab).carry(BYTES);
        assert_eq!(lab.in_kernel(), 0);
        assert_eq!(dropped(&lab), 0);
    }
}

/// The same for datagrams (`UDP_SEGMENT`), and a flow whose first packet is such a frame is shared too.
#[test]
fn frames_of_several_datagrams_are_cut_for_workers() {
    const FRAMES: u16 = 30;
    const DATAGRAMS: u16 = 20 * FRAMES;
    if !may_run(&["ip", "setpriv", "nft", "ethtool", "python3"]) {
        return;
    }
    let send = format!(
        "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.setsockopt(17, 103, 1000); \
         [(s.sendto(bytes(20000), ('10.0.2.2', 4080)), time.sleep(.02)) for _ in range({FRAMES})]"
    );
    for (language, rules, flows) in [("pf", PF, 0), ("ipfw", IPFW, 0), ("pf", PF, 100)] {
        let lab = FlowLab::new(language, rules, "packet", flows);
        let hosts = &lab.lab.lab;
        hosts.left.command("ethtool -K eth0 tx on gso on tx-udp-segmentation on");
        let receiver = hosts.right.run(|| UdpSocket::bind("10.0.2.2:4080").unwrap());
        receiver.set_read_timeout(Some(ANSWER)).unwrap();
        let mut sender = hosts.left.start("python3", &["-c", &send]);
        for _ in 0..DATAGRAMS {
            assert_eq!(receiver.recv(&mut [0; 2000]).unwrap(), 1000);
        }
        assert!(eventually(|| !sender.is_running()) && sender.output().is_empty(), "{}", sender.output());
        assert_eq!(dropped(&lab), 0);
        assert!(eventually(|| (lab.in_kernel() > 0) == (flows > 0)), "{}", lab.filter());
    }
}

#[test]
fn a_connection_ends_with_its_states_and_with_its_router() {
    const SOON: Duration = Duration::from_millis(1500);
    if !may_run(&PROGRAMS) {
        return;
    }
    let lab = FlowLab::new("pf", PF, "packet", 100);
    let mut connection = Connection::new(&lab);
    let in_use = |connection: &mut Connection| {
        let before = lab.in_kernel();
        (0..10).for_each(|_| assert!(connection.delivers(ANSWER)));
        assert!(eventually(|| lab.in_kernel() > before), "{}", lab.filter());
    };
    in_use(&mut connection);
    lab.program.signal("STOP");
    std::thread::sleep(Duration::from_millis(1100));
    assert!(!connection.delivers(SOON), "past a router that hangs");
    lab.program.signal("CONT");
    connection.far.set_read_timeout(Some(ANSWER)).unwrap();
    connection.far.read_exact(&mut [0]).expect("the byte is sent again");
    in_use(&mut connection);
    lab.ask("filter kill --all");
    assert!(!connection.delivers(SOON), "its states are gone");
    let mut connection = Connection::new(&lab);
    in_use(&mut connection);
    lab.program.end("KILL");
    assert!(!connection.delivers(SOON), "past a router that was killed");
}

#[test]
fn iperf3_measures_through_the_kernel() {
    if !may_run(&["ip", "setpriv", "nft", "iperf3"]) {
        return;
    }
    let lab = FlowLab::new("pf", PF, "packet", 100);
    let hosts = &lab.lab.lab;
    let mut server = hosts.right.start("iperf3", &["-s", "-1", "-p", "4080", "--forceflush"]);
    server.wait_for("listening");
    let said = hosts.left.command("iperf3 -c 10.0.2.2 -p 4080 -n 20M");
    assert!(said.contains("receiver"), "{said}");
    assert!(eventually(|| lab.in_kernel() > 1000), "{}", lab.filter());
}
