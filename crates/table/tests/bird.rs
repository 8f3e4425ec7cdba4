//! Checks by other programs: BIRD accepts the tables written here, and `bgpdump` reads the same routes from BIRD's
//! dumps as this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use fullview_table::feed::write::{Dialect, Numbers, write};
use fullview_table::feed::{self, Format, Options, synthetic::Synthetic};
use fullview_table::{Address, NextHops, Rib, Table, Target};
use fullview_testnet::{has_programs, shared};

/// How long BIRD may take for a full view: many times the time that it needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command with the folder of system programs in its path.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", format!("/usr/sbin:{}", std::env::var("PATH").unwrap_or_default()));
    command
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The real table, or a synthetic one if it is not available.
fn table() -> Table {
    match shared::data("tables/full-view-2025.txt.gz") {
        Some(path) => feed::load(&path, &Options::default()).unwrap().table,
        None => Synthetic { inet: 100_000, inet6: 20_000, ..Synthetic::default() }.table().unwrap(),
    }
}

fn write_bird(table: &Table, numbers: Numbers, path: &Path) {
    let mut out = BufWriter::new(fs::File::create(path).unwrap());
    write(table, Dialect::Bird(numbers), &mut out).unwrap();
    out.flush().unwrap();
}

/// A running BIRD that changes nothing on the machine: it has no kernel protocol, and all its files are in one folder.
/// It ends with the test.
struct Bird {
    folder: tempfile::TempDir,
    process: Child,
}

impl Bird {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("bird.conf"), config).unwrap();
        let mut bird = command("bird");
        bird.arg("-f")
            .arg("-c")
            .arg(file("bird.conf"))
            .arg("-s")
            .arg(file("socket"))
            .arg("-P")
            .arg(file("pid"));
        let process = bird.spawn().unwrap();
        Bird { folder, process }
    }

    fn ask(&self, question: &str) -> String {
        let socket = self.folder.path().join("socket");
        let output =
            command("birdc").arg("-r").arg("-s").arg(socket).args(question.split(' ')).output().unwrap();
        text(&output.stdout)
    }

    /// Waits until both tables hold as many routes as `table`.
    fn wait_for(&self, table: &Table) {
        let (deadline, mut answers) = (Instant::now() + PATIENCE, [String::new(), String::new()]);
        while Instant::now() < deadline {
            answers = ["master4", "master6"].map(|name| self.ask(&format!("show route count table {name}")));
            let expected = [table.inet.len(), table.inet6.len()];
            if answers
                .iter()
                .zip(expected)
                .all(|(answer, count)| answer.contains(&format!("{count} of {count} routes")))
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("BIRD has not taken the table: {answers:?}");
    }

    /// Dumps one table as MRT.
    fn dump(&self, table: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{table}.mrt"));
        let socket = self.folder.path().join("socket");
        let request = format!("mrt dump table {table} to \"{}\"", path.display());
        run(command("birdc").arg("-s").arg(socket).arg(request));
        path
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        // The process is ended by its handle: other BIRDs on this machine do not belong to the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn bird_accepts_every_form_of_next_hop() {
    if !has_programs(&["bird"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let routes = "10.0.0.0/8 192.0.2.1\n10.1.0.0/16 7\n10.2.0.0/16 unreachable\n10.3.0.0/16 2001:db8::1\n::/0 2001:db8::1\n";
    let table = feed::read(routes.as_bytes(), Path::new("routes"), &Options::default()).unwrap().table;
    for numbers in [Numbers::Blackhole, Numbers::TestAddresses] {
        let path = folder.path().join("table.conf");
        write_bird(&table, numbers, &path);
        let whole = format!("router id 192.0.2.1;\n{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, whole).unwrap();
        run(command("bird").arg("-p").arg("-c").arg(&path));
    }
}

/// Two BIRDs, one with the table as static routes, which the other learns over eBGP: its dump has a peer, AS paths and
/// next hops, as that of a route collector.
#[test]
fn a_full_view_goes_through_bird_and_back() {
    if !has_programs(&["bird", "birdc", "bgpdump"]) {
        return;
    }
    let table = table();
    let folder = tempfile::tempdir().unwrap();
    let routes = folder.path().join("table.conf");
    write_bird(&table, Numbers::Blackhole, &routes);
    let ports = [1, 2].map(free_port);
    let config = speaker(1, ports, &format!("include \"{}\";", routes.display()), "export all; import none");
    let path = folder.path().join("bird.conf");
    fs::write(&path, &config).unwrap();
    run(command("bird").arg("-p").arg("-c").arg(&path));

    let sender = Bird::start(&config);
    let collector = Bird::start(&speaker(2, [ports[1], ports[0]], "", "export none; import all"));
    sender.wait_for(&table);
    collector.wait_for(&table);
    let dumps = ["master4", "master6"].map(|name| collector.dump(name));
    let [dumped4, dumped6] = dumps.each_ref().map(|path| {
        let loaded = feed::load(path, &Options::default()).unwrap();
        assert_eq!((loaded.report.format, loaded.report.without_next_hop), (Format::Mrt, 0));
        loaded.table
    });
    compare(&table.inet, &dumped4.inet, &dumped4.next_hops, &dumps[0]);
    compare(&table.inet6, &dumped6.inet6, &dumped6.next_hops, &dumps[1]);
}

/// A free port of that address, chosen by the system.
fn free_port(host: u8) -> u16 {
    TcpListener::bind((address(host), 0)).unwrap().local_addr().unwrap().port()
}

/// An address that only this process uses: a port that is free there stays free.
fn address(host: u8) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{high}.{low}.{host}")
}

/// The configuration of speaker `me` (1 or 2) with one session to the other.
fn speaker(me: u8, [own_port, other_port]: [u16; 2], routes: &str, policy: &str) -> String {
    let other = 3 - me;
    let (own_address, other_address) = (address(me), address(other));
    format!(
        "router id 192.0.2.{me};\nprotocol device {{ }}\n{routes}\nprotocol bgp {{\n\
        local {own_address} port {own_port} as 6450{me};\nneighbor {other_address} port {other_port} as 6450{other};\n\
        multihop; strict bind yes; connect delay time 1; connect retry time 1;\n\
        ipv4 {{ next hop address 198.51.100.{me}; {policy}; }};\nipv6 {{ next hop address 2001:db8::{me}; {policy}; }};\n}}\n"
    )
}

/// Checks that the dump has the prefixes sent, and that `bgpdump` reads the same prefixes with the same next hops.
fn compare<A: Address>(sent: &Rib<A>, dumped: &Rib<A>, next_hops: &NextHops, path: &Path) {
    assert!(
        sent.iter().map(|route| route.prefix).eq(dumped.iter().map(|route| route.prefix)),
        "{}",
        path.display()
    );
    let output = run(command("bgpdump").arg("-m").arg(path));
    let mut lines = BTreeMap::new();
    for line in text(&output.stdout).lines() {
        let fields: Vec<_> = line.split('|').collect();
        let next_hop: IpAddr = fields[8].parse().unwrap();
        let prefix: fullview_table::Prefix<A> = fields[5].parse().unwrap();
        assert_eq!(lines.insert(prefix, Target::Gateway(next_hop)), None, "{line}");
    }
    let ours = dumped.iter().map(|route| (route.prefix, next_hops.target(route.next_hop).unwrap()));
    assert!(ours.eq(lines), "bgpdump reads {} differently", path.display());
}
