//! Queries to the router under test; tests wait for the answers that they need.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_testnet::eventually;
use serde_json::Value;

/// The control socket of a router, in a folder of its own.
pub struct Control {
    _folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Control {
    pub fn new() -> Control {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        Control { _folder: folder, socket }
    }

    /// Returns the options that make a router listen at this socket.
    pub fn options(&self) -> [&str; 2] {
        ["--control", self.socket.to_str().unwrap()]
    }

    /// Returns the answer to a request. A busy router is asked again; an error fails the test.
    pub fn ask(&self, request: &str) -> Value {
        let mut answer = Value::Null;
        eventually(|| {
            answer = ask(&mut connect(&self.socket), request);
            !is_busy(&answer.to_string())
        });
        assert!(answer["error"].is_null(), "{request}: {answer}");
        answer["ok"].clone()
    }

    /// Sends a request until the answer satisfies the condition, and then once more: the router has applied what follows
    /// from its state when it gives the next answer.
    pub fn wait_until(&self, request: &str, is_so: impl Fn(&Value) -> bool) {
        let mut last = Value::Null;
        let was_so = eventually(|| {
            last = self.ask(request);
            is_so(&last)
        });
        assert!(was_so, "{request}: {last}");
        self.ask(request);
    }
}

/// Returns whether a busy router has refused to answer.
pub fn is_busy(said: &str) -> bool {
    said.contains("busy; ask again")
}

/// Connects to the router that listens at this socket.
pub fn connect(socket: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    BufReader::new(stream)
}

/// Sends one request, and returns its answer as it is.
pub fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> Value {
    stream.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {line:?}: {error}"))
}

/// Runs our program as a client of the router at this socket. Its arguments are given as one line, in which + stands for a
/// space inside an argument. Returns whether it succeeded, and what it printed.
pub fn ask_by_program(socket: &Path, line: &str) -> (bool, String) {
    let mut answer = (false, String::new());
    eventually(|| {
        let words = line.split(' ').map(|word| word.replace('+', " "));
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_fullview"));
        let output = command.args(words).arg("--control").arg(socket).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        answer = (output.status.success(), said);
        !is_busy(&answer.1)
    });
    answer
}
