//! Our program in front of a kernel. The kernel processes what the program does not forward; from outside, both look like
//! one router.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use fullview_testnet::Program;
use serde_json::Value;
use tempfile::TempDir;

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::kernel::Kernel;
use crate::testbed::{MarkerPath, Testbed};
use crate::topology::SIDES;

/// When a forwarded marker arrives, the program has read all earlier frames. Those that the program returned to the kernel
/// may still be in a queue; a marker that the kernel answers goes through the same queue.
const PATHS: [MarkerPath; 3] = [MarkerPath::Forwarded, MarkerPath::Answered, MarkerPath::Answered];

/// The limit for the program to follow the kernel by netlink, which takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The control socket's name in the folder of a program.
const SOCKET: &str = "control.sock";

/// What the router's cables leave to hardware.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Offloads {
    /// Whatever veth devices do when they are made.
    Default,
    /// What XDP programs and AF_XDP sockets can work with.
    AsXdpNeeds,
}

/// The [`Kernel`] with our program in front of it.
pub struct KernelRouter {
    kernel: Kernel,
    program: Program,
    /// It holds the control socket.
    folder: TempDir,
    /// The kernel's neighbours when the program last knew them all.
    neighbors: BTreeSet<String>,
}

impl KernelRouter {
    /// Starts the program with these arguments, and waits until it forwards.
    pub fn new(offloads: Offloads, arguments: &[&str]) -> KernelRouter {
        let mut kernel = Kernel::new(Catalogue::General);
        kernel.testbed().send_markers_by(&PATHS);
        if offloads == Offloads::AsXdpNeeds {
            kernel.testbed().accept_redirected_frames();
            kernel.testbed().keep_tags();
        }
        let folder = tempfile::tempdir().expect("a folder");
        let names = SIDES.map(|side| side.name).join(",");
        let socket = folder.path().join(SOCKET);
        let always =
            ["forward", "--json", "--interfaces", &names, "--control", socket.to_str().expect("text")];
        let router = &kernel.testbed().router;
        let mut program = router.start(env!("CARGO_BIN_EXE_fullview"), &[&always[..], arguments].concat());
        let neighbors = neighbors(kernel.testbed());
        program.wait_for("forwarding");
        kernel.testbed().wait_until_up();
        KernelRouter { kernel, program, folder, neighbors }
    }

    /// If the kernel's neighbours have changed, waits until the program knows the change.
    fn follow(&mut self) {
        let began = Instant::now();
        let mut known = neighbors(self.kernel.testbed());
        if known == self.neighbors {
            return;
        }
        while self.known_neighbors() != known {
            let ours = self.known_neighbors();
            assert!(began.elapsed() < PATIENCE, "we have {ours:?}, the kernel has {known:?}");
            thread::sleep(Duration::from_millis(5));
            known = neighbors(self.kernel.testbed());
        }
        // The program applies the change before it answers the next query.
        self.known_neighbors();
        self.neighbors = known;
    }

    /// Returns the program's neighbours in the form of [`neighbors`].
    fn known_neighbors(&self) -> BTreeSet<String> {
        let mut stream = UnixStream::connect(self.folder.path().join(SOCKET)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.write_all(b"\"neighbors\"\n").expect("it listens");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("it answers");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let word = |neighbor: &Value, key| neighbor[key].as_str().expect("text").to_owned();
        let neighbor =
            |of: &Value| format!("{} dev {} {}", word(of, "address"), word(of, "interface"), word(of, "mac"));
        answer["ok"].as_array().unwrap_or_else(|| panic!("{line}")).iter().map(neighbor).collect()
    }

    /// Ends the program, and returns how many packets it has forwarded by its own count.
    pub fn end(self) -> u64 {
        let (code, stdout) = self.program.end_with_stdout("TERM");
        assert_eq!(code, Some(0), "{stdout}");
        forwarded(&stdout).unwrap_or_else(|| panic!("no count of packets forwarded: {stdout}"))
    }
}

impl Dut for KernelRouter {
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        let output = self.kernel.exchange(side, frame);
        self.follow();
        output
    }

    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        let output = self.kernel.wait(awaited);
        self.follow();
        output
    }
}

/// Returns the kernel's neighbours that have an Ethernet address, without their states.
fn neighbors(testbed: &Testbed) -> BTreeSet<String> {
    let list = testbed.router.command("ip neigh show");
    let line = |line: &str| Some(format!("{} {}", line.split_once(" lladdr ")?.0, line.split(' ').nth(4)?));
    list.lines().filter_map(line).collect()
}

/// Reads the counter `forwarded` in what the program printed.
fn forwarded(stdout: &str) -> Option<u64> {
    serde_json::from_str::<Value>(stdout).ok()?.get("forwarded")?.as_u64()
}
