//! Traces of packets, captures of dropped ones, and frames that the port had no room for.

use std::path::Path;
use std::time::Duration;

use fullview_testnet::eventually;

use super::{FULLVIEW, Operated, may_operate};

/// Makes tests of these functions, one for each kind of engine.
macro_rules! with_each_engine {
    ($($test:ident),* $(,)?) => {
        mod by_threads {
            $(#[test] fn $test() { super::$test("threads"); })*
        }
        #[cfg(feature = "bpf")]
        mod at_tc {
            $(#[test] fn $test() { super::$test("tc"); })*
        }
        #[cfg(feature = "bpf")]
        mod at_xdp {
            $(#[test] fn $test() { super::$test("xdp-generic"); })*
        }
    };
}

with_each_engine!(a_packet_is_traced_stage_by_stage, drops_are_captured_with_their_reasons_and_within_bounds,);

/// Sends packets until one is dropped for this reason, which workers and the program count by these names.
fn drops_until(operated: &Operated, to: &str, [by_workers, by_program]: [&str; 2]) {
    let drops = || {
        operated.send(to, 1);
        let counters = operated.json("counters");
        let counted = [&counters["drops"][by_workers], &counters["program"][by_program]];
        counted.iter().any(|count| count.as_u64().is_some_and(|count| count > 0))
    };
    assert!(eventually(drops), "{}", operated.ask("show counters"));
}

fn a_packet_is_traced_stage_by_stage(engine: &str) {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--engine", engine]);
    operated.forwards_itself();
    // Before the traces start: a trace explains a packet by the tables at the time of the explanation.
    operated.lab.router.ip("route add prohibit 10.7.0.0/16");
    drops_until(&operated, "10.7.0.1:9", ["prohibited", "discarded"]);
    let socket = operated.socket();
    let trace = |arguments: &'static [&str]| {
        let socket = socket.clone();
        std::thread::spawn(move || {
            let mut command = assert_cmd::Command::new(FULLVIEW);
            command
                .args(["trace", "--count", "2", "--seconds", "60", "--control"])
                .arg(socket)
                .args(arguments);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
    };
    let sent = trace(&["--interface", "eth1", "--match", "dst 10.0.2.0/24 and udp and dport 9"]);
    let lost = trace(&["--drops"]);
    while !sent.is_finished() || !lost.is_finished() {
        operated.send("10.0.2.2:9", 1);
        operated.send("10.0.2.2:10", 1);
        operated.send("10.7.0.1:9", 1);
        std::thread::sleep(Duration::from_millis(20));
    }
    let (sent, lost) = (sent.join().unwrap(), lost.join().unwrap());
    for words in [
        "received on eth1",
        "10.0.1.2 -> 10.0.2.2",
        "10.0.2.2/32 via next hop",
        "neighbour",
        "hops left 64 -> 63",
        "sent on eth2",
    ] {
        assert_eq!(sent.matches(words).count(), 2, "{words}: {sent}");
    }
    assert_eq!(lost.matches("dropped: prohibited").count(), 2, "{lost}");
    assert!(!sent.contains("OTHERWISE") && !lost.contains("OTHERWISE"));
    let (success, said) = operated.try_ask("trace --interface eth7");
    assert!(!success && said.contains("there are eth1, eth2"), "{said}");
}

/// Reads the packets of a pcapng file: interface, comment, length of the frame.
fn read_pcapng(path: &Path) -> Vec<(u32, String, usize)> {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::blocks::opt_common::CommonOption;
    use pcap_file::pcapng::{Block, PcapNgReader};
    let mut reader = PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap().0 {
            let comment = packet.options.iter().find_map(|option| match option {
                EnhancedPacketOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
                _ => None,
            });
            packets.push((packet.interface_id, comment.unwrap(), packet.data.len()));
        }
    }
    packets
}

/// What was captured is in the file, also if it is little.
#[test]
fn a_capture_that_a_signal_ends_is_whole() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--engine", "threads"]);
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let (file, socket) = (operated.path("ended.pcapng"), operated.path("control.sock"));
    let [file_name, socket] = [&file, &socket].map(|path| path.to_str().unwrap());
    for (signal, has_packets) in [("INT", true), ("TERM", false)] {
        let mut capture = operated
            .lab
            .router
            .start(FULLVIEW, &["capture-drops", "--control", socket, "--write", file_name]);
        let length = || std::fs::metadata(&file).map_or(0, |file| file.len());
        assert!(eventually(|| length() > 0 && capture.is_running()));
        let empty = length();
        assert!(
            !has_packets
                || eventually(|| {
                    operated.send("10.8.0.2:9", 1);
                    length() > empty
                })
        );
        let (code, said) = capture.end(signal);
        assert_eq!(code, Some(130), "{said}");
        let packets = read_pcapng(&file).len();
        assert!(said.contains(&format!("{packets} dropped packets, 0 left out")), "{said}");
        assert_eq!(packets > 0, has_packets);
        std::fs::remove_file(&file).unwrap();
    }
}

/// The router is not busy.
#[test]
fn a_trace_says_that_its_router_has_ended() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--engine", "threads"]);
    let socket = operated.path("control.sock");
    let mut trace = operated.lab.router.start(FULLVIEW, &["trace", "--control", socket.to_str().unwrap()]);
    assert!(eventually(|| {
        operated.send("10.8.0.2:9", 1);
        trace.output().contains("10.8.0.2")
    }));
    let (code, said) = operated.router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    assert!(eventually(|| !trace.is_running()));
    let said = trace.output();
    assert!(said.contains("the router is ending") || said.contains("the router stopped answering"), "{said}");
}

fn drops_are_captured_with_their_reasons_and_within_bounds(engine: &str) {
    if !may_operate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drops.pcapng");
    let operated = Operated::start(&[
        "--engine",
        engine,
        "--capture-drops",
        file.to_str().unwrap(),
        "--capture-limit",
        "20000",
        "--capture-rate",
        "200",
    ]);
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    drops_until(&operated, "10.8.0.3:9", ["blackhole"; 2]);
    let asked = operated.path("asked.pcapng");
    let (socket, written) = (operated.socket(), asked.clone());
    let client = std::thread::spawn(move || {
        let arguments =
            ["capture-drops", "--count", "3", "--seconds", "60", "--match", "dst 10.8.0.2", "--control"];
        assert_cmd::Command::new(FULLVIEW)
            .args(arguments)
            .arg(socket)
            .arg("--write")
            .arg(written)
            .output()
            .unwrap()
    });
    while !client.is_finished() {
        operated.send("10.8.0.1:9", 20);
        operated.send("10.8.0.2:9", 1);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(client.join().unwrap().status.success());
    let packets = read_pcapng(&asked);
    assert_eq!(packets.len(), 3);
    assert!(
        packets.iter().all(|(_, comment, len)| comment == "drop: blackhole" && *len >= 50),
        "{packets:?}"
    );
    let full = eventually(|| {
        operated.send("10.8.0.1:9", 50);
        operated.router.output().contains("the capture is full")
    });
    let (code, said) = operated.router.end("TERM");
    assert!(full && code == Some(0), "{said}");
    assert!(std::fs::metadata(&file).unwrap().len() <= 20_000);
    let packets = read_pcapng(&file);
    assert!(packets.iter().any(|(_, comment, _)| comment == "dropped: blackhole"), "{packets:?}");
}

#[test]
fn frames_that_the_ring_had_no_room_for_are_reported() {
    if !may_operate() {
        return;
    }
    let mut operated = Operated::start(&["--engine", "threads"]);
    operated.forwards_itself();
    operated.router.signal("STOP");
    // More than the ring of the port holds.
    operated.send("10.0.2.2:9", 8_000);
    operated.router.signal("CONT");
    let overruns = || operated.json("interfaces")[0]["overruns"].as_u64().unwrap();
    assert!(eventually(|| overruns() > 0), "{}", operated.ask("show interfaces"));
    assert!(operated.ask("show interfaces").contains("eth1 had no room for"));
    operated.router.wait_for("eth1: no room for");
    assert!(operated.ask("show events").contains("eth1: no room for"));
    operated.forwards();
    assert_eq!(operated.router.end("TERM").0, Some(0));
}
