//! Our program without a kernel, on TAP interfaces: what a station sends by the kernel's end of a TAP interface, the
//! program receives.

use std::fmt::Write as _;

use fullview_testnet::{Node, Program};

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::testbed::{MarkerPath, Testbed};
use crate::topology::{
    self, LINK_LENGTHS, LINK_LOCAL, ROUTER, ROUTES, SIDES, STATION, STATION_LOCAL, Side, To,
};

/// When a forwarded marker arrives, the program has read all earlier frames. Its host's answers to them may still be in a
/// queue; a marker that the host answers goes through the same queue.
const PATHS: [MarkerPath; 2] = [MarkerPath::Forwarded, MarkerPath::Answered];

/// The program, and the stations on its interfaces.
pub struct TapRouter {
    testbed: Testbed,
    program: Program,
    _folder: tempfile::TempDir,
}

impl TapRouter {
    pub fn new(catalogue: Catalogue) -> TapRouter {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("router.toml");
        std::fs::write(&file, configuration(catalogue)).expect("a file");
        let router = Node::bare();
        let arguments = ["forward", "--config", file.to_str().expect("text")];
        let mut program = router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
        program.wait_for("forwarding");
        let mut testbed = Testbed::around(router, hand_over);
        testbed.send_markers_by(&PATHS);
        testbed.wait_until_up();
        // The router forwards a moment before it announces itself to the stations.
        testbed.collect([0; SIDES.len()]);
        TapRouter { testbed, program, _folder: folder }
    }

    /// Ends the program, which has to succeed.
    pub fn end(self) {
        let (code, stdout) = self.program.end_with_stdout("TERM");
        assert!(code == Some(0) && stdout.contains("forwarded"), "{code:?}: {stdout}");
    }
}

impl Dut for TapRouter {
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.testbed.exchange(side, frame)
    }

    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        self.testbed.collect(awaited)
    }
}

/// Moves the kernel's end of the program's interface to the station, which accepts longer frames than the router sends.
fn hand_over(router: &Node, host: &Node, number: usize, side: &Side) {
    let (name, mac) = (side.name, topology::station_mac(number));
    router.ip(&format!("link set {name} netns {}", host.id()));
    host.ip(&format!("link set {name} name station mtu 2000 address {mac}"));
    host.ip("link set station up");
}

/// Returns a configuration like those of the other devices: without rate limits, with times that a test can wait for, and
/// without times so short that they would pass on a slow machine.
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
