//! Our program in front of a kernel: what it does not forward itself is the kernel's, and nobody can tell from outside.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::kernel::Kernel;
use crate::testbed::{Testbed, Way};
use crate::topology::SIDES;

/// A forwarded marker has seen all frames before it read by the program; those that the program gave back to the kernel
/// meanwhile are behind it, in a queue that markers follow which the kernel answers.
const WAYS: [Way; 3] = [Way::Forwarded, Way::Answered, Way::Answered];

/// The program follows the kernel by netlink, which takes it milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// In the folder of a program.
const SOCKET: &str = "control.sock";

/// The [`Kernel`] with our program before it.
pub struct Program {
    kernel: Kernel,
    child: Child,
    /// Where the program is asked.
    folder: TempDir,
    /// When last looked at.
    neighbors: BTreeSet<String>,
}

impl Program {
    /// Starts it with these arguments, and waits until it forwards.
    pub fn new(arguments: &[&str]) -> Program {
        let mut kernel = Kernel::new(Catalogue::General).expect("namespaces");
        kernel.testbed().settle_by(&WAYS);
        kernel.testbed().take_redirected();
        kernel.testbed().leave_tags();
        let folder = tempfile::tempdir().expect("a folder");
        let control = ["--control", folder.path().join(SOCKET).to_str().expect("text")].map(str::to_owned);
        let arguments = arguments.iter().map(|&word| word.to_owned()).chain(control);
        let child = start(&mut kernel, arguments);
        let neighbors = neighbors(kernel.testbed());
        let mut program = Program { kernel, child, folder, neighbors };
        program.await_words("forwarding");
        program.kernel.testbed().wait_until_up();
        program
    }

    /// If the kernel has learnt something about neighbours, waits until the program has heard of it.
    fn follow(&mut self) {
        let began = Instant::now();
        let mut known = neighbors(self.kernel.testbed());
        if known == self.neighbors {
            return;
        }
        while self.heard() != known {
            assert!(began.elapsed() < PATIENCE, "{:?}, and the kernel has {known:?}", self.heard());
            thread::sleep(Duration::from_millis(5));
            known = neighbors(self.kernel.testbed());
        }
        // What follows from it has been done before the next question is answered.
        self.heard();
        self.neighbors = known;
    }

    /// The program's neighbours, as [`neighbors`] has the kernel's.
    fn heard(&self) -> BTreeSet<String> {
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

    /// Reads what it says until these words.
    fn await_words(&mut self, words: &str) {
        let mut said = String::new();
        let mut lines = BufReader::new(self.child.stderr.as_mut().expect("a pipe"));
        while !said.contains(words) {
            let len = lines.read_line(&mut said).expect("what it says is text");
            assert!(len > 0, "the program ended, and said: {said}");
        }
    }

    /// Ends it; how many packets it says it has forwarded.
    pub fn end(mut self) -> u64 {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
        let status = self.child.wait().expect("it ends");
        let mut said = String::new();
        self.child.stdout.as_mut().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(status.success(), "{status}: {said}");
        forwarded(&said).unwrap_or_else(|| panic!("no count of packets forwarded: {said}"))
    }
}

impl Dut for Program {
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

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// It ends with the namespace at the latest.
fn start(kernel: &mut Kernel, arguments: impl Iterator<Item = String>) -> Child {
    let names = SIDES.map(|side| side.name).join(",");
    let program =
        ["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_fullview"), "forward", "--json", "--interfaces", &names];
    let words: Vec<String> = program.iter().map(|&word| word.to_owned()).chain(arguments).collect();
    kernel.testbed().router.run(move || {
        let mut command = Command::new("setpriv");
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("setpriv runs")
    })
}

/// The kernel's neighbours that have an Ethernet address, without their states.
fn neighbors(testbed: &Testbed) -> BTreeSet<String> {
    let list = testbed.router.command("ip neigh show");
    let line = |line: &str| Some(format!("{} {}", line.split_once(" lladdr ")?.0, line.split(' ').nth(4)?));
    list.lines().filter_map(line).collect()
}

/// The counter of that name.
fn forwarded(said: &str) -> Option<u64> {
    serde_json::from_str::<Value>(said).ok()?.get("forwarded")?.as_u64()
}
