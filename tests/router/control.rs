//! What the router under test says of itself, to wait for.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_testnet::eventually;
use serde_json::Value;

/// Where a router is asked.
pub struct Control {
    _folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Control {
    /// A place for a router to listen at.
    pub fn new() -> Control {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        Control { _folder: folder, socket }
    }

    /// The options of the router that listen there.
    pub fn options(&self) -> [&str; 2] {
        ["--control", self.socket.to_str().unwrap()]
    }

    /// The answer to a request; it has to be given, if not at once.
    pub fn ask(&self, request: &str) -> Value {
        let mut answer = Value::Null;
        eventually(|| {
            answer = ask(&mut connect(&self.socket), request);
            !is_busy(&answer.to_string())
        });
        assert!(answer["error"].is_null(), "{request}: {answer}");
        answer["ok"].clone()
    }

    /// Asks until the answer is as it should be, and once more: what follows from it has been done by then, too.
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

/// Whether a router that was at something else told the one who asked to ask again.
pub fn is_busy(said: &str) -> bool {
    said.contains("busy; ask again")
}

/// A conversation with the router that listens there.
pub fn connect(socket: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    BufReader::new(stream)
}

/// One request, and its answer as it is.
pub fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> Value {
    stream.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{request}: {line:?}: {error}"))
}

/// Has our program ask the router that listens there: arguments written as one line, with + for a blank in one. Whether
/// it succeeded, and what it printed.
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
