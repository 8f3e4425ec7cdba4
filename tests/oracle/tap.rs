//! Our program with no kernel behind it, on interfaces of its own: what a station sends by the other end of a TAP comes in
//! there.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::namespace::Namespace;
use crate::testbed::{Testbed, Way};
use crate::topology::{
    self, LINK_LENGTHS, LINK_LOCAL, ROUTER, ROUTES, SIDES, STATION, STATION_LOCAL, Side, To,
};

/// A forwarded marker has seen all frames before it read by the program; what its host has to say about them is behind
/// it, in a queue that markers follow which the host answers.
const WAYS: [Way; 2] = [Way::Forwarded, Way::Answered];

/// The program, and the stations on its interfaces.
pub struct Program {
    testbed: Testbed,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Program {
    pub fn new(catalogue: Catalogue) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("router.toml");
        std::fs::write(&file, configuration(catalogue)).expect("a file");
        let router = Namespace::new().expect("a namespace");
        let mut child = start(&router, file.display().to_string());
        await_words(&mut child, "forwarding");
        let mut testbed = Testbed::around(router, hand_over).expect("namespaces");
        testbed.settle_by(&WAYS);
        testbed.wait_until_up();
        // It forwards a moment before it has told the stations that it is there.
        testbed.collect([0; SIDES.len()]);
        Program { testbed, child, _folder: folder }
    }

    /// Ends it.
    pub fn end(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
        let status = self.child.wait().expect("it ends");
        let mut said = String::new();
        self.child.stdout.as_mut().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(status.success() && said.contains("forwarded"), "{status}: {said}");
    }
}

impl Dut for Program {
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.testbed.exchange(side, frame)
    }

    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        self.testbed.collect(awaited)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// It ends with the namespace at the latest.
fn start(router: &Namespace, file: String) -> Child {
    router.run(move || {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_fullview"), "forward", "--config", &file]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("setpriv runs")
    })
}

fn await_words(child: &mut Child, words: &str) {
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.as_mut().expect("a pipe"));
    while !said.contains(words) {
        let len = lines.read_line(&mut said).expect("what it says is text");
        assert!(len > 0, "the program ended, and said: {said}");
    }
}

/// The kernel's end of the program's interface becomes the station's, which takes longer frames than the router sends.
fn hand_over(router: &Namespace, host: &Namespace, number: usize, side: &Side) {
    let (name, mac) = (side.name, topology::station_mac(number));
    router.ip(&format!("link set {name} netns {}", host.number()));
    host.ip(&format!("link set {name} name station mtu 2000 address {mac}"));
    host.ip("link set station up");
}

/// As for the other devices: no limits, and times that a test can wait for, and none that a slow machine would meet.
fn configuration(catalogue: Catalogue) -> String {
    let mut text = String::from("[router]\nkernel = false\nport = \"tap\"\n");
    let names = SIDES.map(|side| side.name);
    writeln!(text, "interfaces = {names:?}").expect("memory");
    let most = u32::MAX;
    writeln!(
        text,
        "[icmp]\nrate = {most}\nburst = {most}\ninterface-rate = {most}\ninterface-burst = {most}"
    )
    .expect("memory");
    text += "[neighbors]\nretransmit-ms = 2_500\nstale-ms = 60_000\nlock-ms = 60_000\n";
    (0..SIDES.len()).for_each(|side| text += &interface(side, catalogue));
    (0..SIDES.len()).for_each(|side| text += &neighbors(side));
    ROUTES.iter().for_each(|(prefix, to)| text += &route(prefix, *to));
    text
}

fn interface(side: usize, catalogue: Catalogue) -> String {
    let (name, mtu, mac) = (SIDES[side].name, SIDES[side].mtu, topology::router_mac(side));
    let (inet, inet6) = (topology::inet(side, ROUTER), topology::inet6(side, ROUTER.into()));
    let (len, len6) = LINK_LENGTHS;
    let redirects = catalogue.redirects();
    format!(
        "[interface.{name}]\nmtu = {mtu}\nmac = \"{mac}\"\nredirects = {redirects}\n\
         address = [\"{inet}/{len}\", \"{inet6}/{len6}\", \"{LINK_LOCAL}/{len6}\"]\n"
    )
}

fn neighbors(side: usize) -> String {
    let (name, mac) = (SIDES[side].name, topology::station_mac(side));
    let (inet, inet6) = (topology::inet(side, STATION), topology::inet6(side, STATION.into()));
    let station = |ip| format!("[[neighbor]]\naddress = \"{ip}\"\ndev = \"{name}\"\nmac = \"{mac}\"\n");
    [inet.to_string(), inet6.to_string(), STATION_LOCAL.to_string()].map(station).concat()
}

fn route(prefix: &str, to: To) -> String {
    let leads = match to {
        To::Station(side) if prefix.contains(':') => {
            format!("via = \"{}\"", topology::inet6(side, STATION.into()))
        }
        To::Station(side) => format!("via = \"{}\"", topology::inet(side, STATION)),
        To::LinkLocal(side) => format!("via = \"{STATION_LOCAL}\"\ndev = \"{}\"", SIDES[side].name),
        To::Blackhole => "kind = \"blackhole\"".into(),
        To::Unreachable => "kind = \"unreachable\"".into(),
        To::Prohibit => "kind = \"prohibit\"".into(),
    };
    format!("[[route]]\nto = \"{prefix}\"\n{leads}\n")
}
