//! What operators do with a running router: ask it, scrape it, trace it, reload it, and try to disturb it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_testnet::{Program, cable, eventually, may_run};
use serde_json::Value;

use crate::control::ask_by_program;
use crate::exposition;
use crate::lab::{Lab, reaches};

pub const FULLVIEW: &str = env!("CARGO_BIN_EXE_fullview");

/// A router at work, with a folder for its sockets and files.
struct Operated {
    lab: Lab,
    router: Program,
    folder: tempfile::TempDir,
}

impl Operated {
    fn start(options: &[&str]) -> Operated {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new();
        let socket = folder.path().join("control.sock");
        let options = [&["--control", socket.to_str().unwrap()], options].concat();
        let router = lab.forward(&options);
        Operated { lab, router, folder }.up()
    }

    fn configured(text: &str) -> Operated {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new();
        let file = folder.path().join("router.toml");
        std::fs::write(&file, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        let mut router = lab.router.start(FULLVIEW, &["forward", "--config", file.to_str().unwrap()]);
        router.wait_for("forwarding");
        Operated { lab, router, folder }.up()
    }

    fn up(mut self) -> Operated {
        self.router.wait_for("control: ");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// Runs our program with these arguments, written as one line; what it printed, and whether it succeeded.
    fn try_ask(&self, line: &str) -> (bool, String) {
        ask_by_program(&self.socket(), line)
    }

    fn ask(&self, line: &str) -> String {
        let (success, said) = self.try_ask(line);
        assert!(success, "{line}: {said}");
        said
    }

    fn json(&self, what: &str) -> Value {
        serde_json::from_str(&self.ask(&format!("show {what} --json"))).unwrap()
    }

    /// Packets from the left arrive on the right.
    fn forwards(&self) {
        let (left, right) = (self.lab.left.udp("10.0.1.2:0"), self.lab.right.udp("10.0.2.2:9"));
        assert!(reaches(&left, &right, "10.0.2.2:9"), "{}", self.router.output());
    }

    /// Until the router itself has forwarded a packet: the first ones may be the kernel's, which resolves neighbours.
    fn forwards_itself(&self) {
        let forwarded = || {
            self.forwards();
            self.json("counters")["sent"]["packets"].as_u64().unwrap() >= 1
        };
        assert!(eventually(forwarded), "{}", self.ask("show counters"));
    }

    fn send(&self, to: &str, count: usize) {
        let left = self.lab.left.udp("10.0.1.2:0");
        (0..count).for_each(|_| assert!(left.send_to(b"fullview", to).is_ok()));
    }
}

fn may_operate() -> bool {
    may_run(&["ip", "ping", "setpriv"])
}

#[test]
fn a_router_shows_what_it_has() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    operated.forwards_itself();
    operated.lab.router.ip("route add 10.9.0.0/16 nexthop via 10.0.2.2 weight 3 nexthop via 10.0.1.2");
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let shown = |what: &str, words: &[&str]| {
        let mut said = String::new();
        let found = eventually(|| {
            said = operated.ask(&format!("show {what}"));
            words.iter().all(|word| said.contains(word))
        });
        assert!(found, "{what}: {said}");
    };
    shown("interfaces", &["eth1", "eth2", "up", "10.0.1.1/24", "2001:db8:2::1/64"]);
    shown(
        "routes",
        &["10.8.0.0/16 blackhole", "10.0.2.2/32 via 10.0.2.2 dev eth2", "2001:db8:1::/64 dev eth1"],
    );
    shown("routes 10.9.0.0/16", &["10.9.0.0/16 group of 2"]);
    shown("routes 10.9.1.1", &["route 10.9.0.0/16", "via 10.0.2.2 dev eth2, 48/64 of the flows; neighbour"]);
    shown("routes 10.0.2.2", &["route 10.0.2.2/32", "neighbour", "on eth2"]);
    shown("routes 203.0.113.1", &["no route"]);
    shown("neighbors", &["10.0.2.2", "eth2"]);
    shown("fib", &["inet", "254", "synced", "[fib_algo]"]);
    shown("events", &["link     eth1 is up", "router"]);
    shown("counters", &["forwarded", "worker 0"]);
    let limited = operated.ask("show routes --limit 2");
    assert_eq!(limited.lines().count(), 2, "{limited}");
    assert!(!operated.try_ask("show routes 10.9.0.1/16").0, "bits beyond the length");
    let counters = operated.json("counters");
    assert!(counters["sent"]["packets"].as_u64().unwrap() >= 1, "{counters}");
    let mode = std::fs::metadata(operated.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let socket = operated.socket();
    assert_eq!(operated.router.end("TERM").0, Some(0));
    assert!(!socket.exists(), "the socket goes with the router");
}

#[test]
fn the_pages_of_a_large_table_fit_together() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    let routes: String =
        (0..2500).map(|n| format!("route add blackhole 172.{}.{}.0/24\n", 16 + n / 256, n % 256)).collect();
    let batch = operated.path("routes");
    std::fs::write(&batch, routes).unwrap();
    operated.lab.router.ip(&format!("-batch {}", batch.display()));
    let listed = || operated.ask("show routes 172.16.0.0/12");
    assert!(eventually(|| listed().lines().count() == 2500), "{}", listed().lines().count());
    let listed = listed();
    let prefixes: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        (prefixes[0], prefixes[999], prefixes[1000]),
        ("172.16.0.0/24", "172.19.231.0/24", "172.19.232.0/24")
    );
}

/// Sends bytes, and reads what comes back until the router closes; on a busy machine it may take its time.
pub fn converse(socket: &Path, bytes: &[u8], ends: bool) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The router may close before it has read everything.
    let _ = stream.write_all(bytes);
    if ends {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn hostile_clients_do_not_disturb_the_router() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    let socket = operated.socket();
    assert!(
        converse(&socket, b"\xff\x00garbage\n\"nonsense\"\n", true).matches("not a request").count() == 2
    );
    assert!(converse(&socket, &vec![b'x'; 1 << 20], false).contains("longer than 65536 bytes"));
    assert_eq!(converse(&socket, b"\"interfaces\"", true), "", "a line that is cut short is none");
    let several = converse(&socket, b"\"neighbors\"\n\"counters\"\n", true);
    assert_eq!(several.matches("{\"ok\":").count(), 2, "{several}");
    assert!(converse(&socket, b"\"noted\"\n", true).contains("nothing is watched"));
    // Clients that say nothing, and clients that ask for more than the socket holds and never read.
    let silent: Vec<UnixStream> = (0..4).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let deaf: Vec<UnixStream> = (0..4)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            while stream.write_all(&b"\"fib\"\n".repeat(1000)).is_ok() {}
            stream
        })
        .collect();
    operated.forwards();
    assert!(operated.ask("show interfaces").contains("eth1"), "there is a place for one more client");
    let is_refused = || {
        let _many: Vec<UnixStream> = (0..16).map(|_| UnixStream::connect(&socket).unwrap()).collect();
        converse(&socket, b"\"counters\"\n", true).contains("too many clients")
    };
    // It is said to those who listen at once.
    assert!(eventually(is_refused));
    drop((silent, deaf));
    assert!(eventually(|| operated.try_ask("show counters").0));
    operated.forwards();
}

#[test]
fn prometheus_scrapes_what_was_forwarded() {
    if !may_operate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics.sock");
    let operated = Operated::start(&["--metrics", metrics.to_str().unwrap()]);
    operated.forwards_itself();
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let answer = || converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let dropped = eventually(|| {
        operated.send("10.8.0.1:9", 3);
        let answer = answer();
        let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
        page.value("fullview_dropped_packets_total", &[("reason", "blackhole")]) >= 3.0
    });
    let answer = answer();
    assert!(dropped, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{answer}");
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
    let value = |name: &str, labels: &[(&str, &str)]| page.value(name, labels);
    let by_interface = [("interface", "eth1"), ("reason", "blackhole")];
    assert!(value("fullview_interface_dropped_packets_total", &by_interface) >= 3.0);
    assert!(operated.ask("show interfaces").contains("eth1 dropped: blackhole "));
    assert!(value("fullview_interface_transmit_packets_total", &[("interface", "eth2")]) >= 1.0);
    assert!(value("fullview_interface_receive_bytes_total", &[("interface", "eth1")]) >= 50.0);
    assert_eq!(value("fullview_interface_receive_overruns_total", &[("interface", "eth1")]), 0.0);
    assert_eq!(value("fullview_interface_up", &[("interface", "eth1")]), 1.0);
    assert!(value("fullview_fib_routes", &[("family", "inet"), ("table", "254")]) >= 5.0);
    assert!(
        value("fullview_neighbors", &[("state", "usable")])
            + value("fullview_neighbors", &[("state", "stale")])
            >= 1.0
    );
    assert_eq!(value("fullview_netlink_resyncs_total", &[]), 0.0);
    assert!(value("fullview_worker_seconds_total", &[("worker", "0")]) > 0.0);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("hello\r\n\r\n", "400"),
    ] {
        assert!(converse(&metrics, request.as_bytes(), true).contains(status), "{request}");
    }
    let head = converse(&metrics, b"HEAD /metrics HTTP/1.0\r\n\r\n", true);
    assert!(head.ends_with("\r\n\r\n") && head.contains("200 OK"), "{head}");
}

#[cfg(feature = "bpf")]
#[test]
fn what_the_program_in_the_kernel_counts_is_shown_and_scraped() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics.sock");
    let operated = Operated::start(&["--engine", "xdp-generic", "--metrics", metrics.to_str().unwrap()]);
    operated.forwards();
    let forwarded = |counters: &Value| counters["program"]["forwarded"].as_u64().unwrap();
    let before = forwarded(&operated.json("counters"));
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let counted = eventually(|| {
        operated.send("10.0.2.2:9", 10);
        operated.send("10.8.0.1:9", 3);
        let counters = operated.json("counters");
        forwarded(&counters) >= before + 10 && counters["program"]["discarded"].as_u64().unwrap() >= 3
    });
    let shown = operated.ask("show counters");
    assert!(
        counted && shown.contains("program: forwarded ") && shown.contains("program: discarded "),
        "{shown}"
    );
    let counters = operated.json("counters");
    assert!(counters["workers"][1]["name"].as_str().unwrap().starts_with("processor "), "{counters}");
    let interfaces = operated.json("interfaces");
    let [left, right] = [0, 1].map(|number| &interfaces[number]);
    let packets = |side: &Value| side["packets"].as_u64().unwrap();
    assert!(packets(&left["received"]) >= 13 && packets(&right["sent"]) >= 10, "{interfaces}");
    assert!(left["received"]["bytes"].as_u64().unwrap() >= 13 * 42, "{interfaces}");
    assert!(left["program"]["discarded"].as_u64().unwrap() >= 3, "{interfaces}");
    assert_eq!(right["program"]["discarded"], 0, "{interfaces}");
    let answer = converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
    let value = |outcome| page.value("fullview_program_packets_total", &[("outcome", outcome)]);
    assert!(value("forwarded") >= 10.0 && value("discarded") >= 3.0, "{answer}");
    let of =
        |name: &str, labels: &[(&str, &str)]| page.value(&format!("fullview_interface_{name}_total"), labels);
    assert!(of("transmit_packets", &[("interface", "eth2")]) >= 10.0, "{answer}");
    assert!(of("program_packets", &[("interface", "eth1"), ("reason", "discarded")]) >= 3.0, "{answer}");
}

#[test]
fn a_packet_is_traced_stage_by_stage() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&[]);
    operated.forwards();
    // Before anybody looks: what a packet met is told by the table of the moment at which it is told.
    operated.lab.router.ip("route add prohibit 10.7.0.0/16");
    let prohibits = || {
        operated.send("10.7.0.1:9", 1);
        operated.ask("show counters").contains("prohibited")
    };
    assert!(eventually(prohibits));
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

/// The packets of a pcapng file: interface, comment, length of the frame.
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

#[test]
fn drops_are_captured_with_their_reasons_and_within_bounds() {
    if !may_operate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drops.pcapng");
    let operated = Operated::start(&[
        "--capture-drops",
        file.to_str().unwrap(),
        "--capture-limit",
        "20000",
        "--capture-rate",
        "200",
    ]);
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
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

const CONFIG: &str = r#"[router]
interfaces = ["eth1", "eth2"]
[control]
socket = "FOLDER/control.sock"
"#;

#[test]
fn a_configuration_is_reloaded_or_refused_as_a_whole() {
    if !may_operate() {
        return;
    }
    let operated = Operated::configured(CONFIG);
    operated.forwards();
    let file = operated.path("router.toml");
    let write = |more: &str| {
        let text = CONFIG.replace("FOLDER", operated.folder.path().to_str().unwrap()) + more;
        std::fs::write(&file, text).unwrap();
    };
    write("[interface.eth1]\nsource-check = \"strict\"\n");
    assert!(operated.ask("reload").contains("is in force"));
    let checked = operated.json("interfaces");
    assert_eq!(checked[0]["source-check"], "strict", "{checked}");
    write("[metrics]\nlisten = \"127.0.0.1:0\"\n");
    let (success, said) = operated.try_ask("reload");
    assert!(!success && said.contains("metrics cannot change while the router runs"), "{said}");
    write("[interfaces]\n");
    let (success, said) = operated.try_ask("reload");
    assert!(!success && said.contains("line 5") && said.contains("interfaces"), "{said}");
    assert_eq!(operated.json("interfaces")[0]["source-check"], "strict", "what was in force stays");
    std::fs::write(
        &file,
        CONFIG
            .replace("FOLDER", operated.folder.path().to_str().unwrap())
            .replace("[control]", "algorithm = \"dxr\"\n[control]"),
    )
    .unwrap();
    operated.router.signal("HUP");
    let pinned = || operated.json("fib")[0]["algorithm"] == "dxr";
    assert!(eventually(pinned), "{}", operated.router.output());
    assert_eq!(operated.json("interfaces")[0]["source-check"], "off");
    operated.forwards();
    assert!(operated.ask("show events").contains("reload   refused"));
    assert_eq!(operated.router.end("TERM").0, Some(0));
}

#[test]
fn frames_that_find_no_room_are_told_of() {
    if !may_operate() {
        return;
    }
    let mut operated = Operated::start(&[]);
    operated.forwards_itself();
    operated.router.signal("STOP");
    // More than the ring of its port takes.
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

#[test]
fn a_hangup_without_a_file_ends_nothing() {
    if !may_operate() {
        return;
    }
    let mut operated = Operated::start(&[]);
    operated.router.signal("HUP");
    operated.router.wait_for("reload refused: the router was started without --config");
    operated.forwards();
    assert_eq!(operated.router.end("TERM").0, Some(0));
}

#[test]
fn who_does_not_read_what_it_says_does_not_stop_the_router() {
    if !may_operate() {
        return;
    }
    let (lab, folder) = (Lab::new(), tempfile::tempdir().unwrap());
    let socket = folder.path().join("control.sock");
    let (unread, full) = std::io::pipe().unwrap();
    let mut filler = full.try_clone().unwrap();
    // Until nobody can read any more.
    let filling = std::thread::spawn(move || while filler.write_all(&[b'.'; 4096]).is_ok() {});
    let options = ["forward", "--interfaces", "eth1,eth2", "--control", socket.to_str().unwrap()];
    let router = lab.router.start_with_stderr(FULLVIEW, &options, full);
    assert!(eventually(|| UnixStream::connect(&socket).is_ok()), "it does not listen");
    let operated = Operated { lab, router, folder };
    for _ in 0..3 {
        operated.lab.router.ip("link set eth2 down");
        let is_up = |up: bool| eventually(|| operated.json("interfaces")[1]["up"] == up);
        assert!(is_up(false), "{}", operated.ask("show interfaces"));
        operated.lab.router.ip("link set eth2 up");
        assert!(is_up(true), "{}", operated.ask("show interfaces"));
        operated.router.signal("HUP");
    }
    operated.forwards();
    assert_eq!(operated.router.end("TERM").0, Some(0));
    drop(unread);
    filling.join().unwrap();
}

#[test]
fn nothing_is_lost_while_the_configuration_is_reloaded() {
    if !may_operate() {
        return;
    }
    let operated = Operated::configured(CONFIG);
    operated.forwards();
    let (left, right) = (operated.lab.left.udp("10.0.1.2:0"), operated.lab.right.udp("10.0.2.2:9"));
    let texts = ["", "[interface.eth1]\nsource-check = \"strict\"\n"];
    for round in 0..10 {
        let text = CONFIG.replace("FOLDER", operated.folder.path().to_str().unwrap()) + texts[round % 2];
        std::fs::write(operated.path("router.toml"), text).unwrap();
        (0..5).for_each(|_| assert!(left.send_to(b"before", "10.0.2.2:9").is_ok()));
        operated.ask("reload");
        (0..5).for_each(|_| assert!(left.send_to(b"after", "10.0.2.2:9").is_ok()));
    }
    let mut heard = [0; 64];
    let arrived = (0..100).take_while(|_| right.recv_from(&mut heard).is_ok()).count();
    assert_eq!(arrived, 100, "{}", operated.ask("show counters"));
}

/// What it is after the change has to be enough, also for ports that are opened later.
#[test]
fn another_user_forwards_as_well() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--user", "nobody", "--metrics", "127.0.0.1:0"]);
    operated.forwards();
    let nobody = operated.lab.router.command("id -u nobody").trim().to_owned();
    let status = std::fs::read_to_string(format!("/proc/{}/status", operated.router.id())).unwrap();
    let users = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert_eq!(users.split_whitespace().skip(1).collect::<Vec<_>>(), [nobody.as_str(); 4]);
    operated.lab.router.ip("link del eth2");
    cable((&operated.lab.right, "eth0"), (&operated.lab.router, "eth2"));
    operated.lab.router.ip("addr add 10.0.2.1/24 dev eth2");
    operated.lab.right.ip("addr add 10.0.2.2/24 dev eth0");
    operated.forwards();
    assert!(operated.ask("show counters").contains("forwarded"));
    let (code, said) = operated.router.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    // As another user, too, it ends with whoever started it: here the host.
    let mut program = operated.lab.forward(&["--user", "nobody"]);
    assert!(program.is_running());
    drop(operated.lab);
    assert!(eventually(|| !program.is_running()));
}

#[test]
fn a_confined_router_has_what_it_needs_and_no_more() {
    if !may_operate() {
        return;
    }
    let operated = Operated::start(&["--metrics", "127.0.0.1:0"]);
    operated.forwards();
    // The threads of the router are those of the child of setpriv's process, which setpriv has become.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", operated.router.id())).unwrap();
    let statuses: Vec<String> =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()).collect();
    assert!(statuses.len() >= 4, "{}", statuses.len());
    for status in statuses {
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1".into(), "2".into()), "{status}");
        let capabilities = u64::from_str_radix(&field("CapEff:"), 16).unwrap();
        const NET_ADMIN_RAW_BPF_PERFMON_IPC_LOCK: u64 = 1 << 12 | 1 << 13 | 1 << 39 | 1 << 38 | 1 << 14;
        assert_eq!(capabilities & !NET_ADMIN_RAW_BPF_PERFMON_IPC_LOCK, 0, "{status}");
        assert_eq!(field("CapEff:"), field("CapPrm:"));
    }
    operated.forwards();
    assert_eq!(operated.router.end("INT").0, Some(0));
}
