//! Programs that tests start.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::requirements::find;
use crate::wait::eventually;

/// A running program and its output. The program is killed when this value is dropped.
pub struct Program {
    child: Child,
    readers: Vec<JoinHandle<()>>,
    stdout: Arc<Mutex<String>>,
    /// Standard output and, if it is read, standard error.
    output: Arc<Mutex<String>>,
}

impl Program {
    /// Starts a program in the namespace of the calling thread. The kernel kills the program when this thread ends,
    /// however it ends: the signal at the parent's death is sent when the parent's thread dies, not its process.
    pub fn start(program: &str, arguments: &[&str]) -> Program {
        Program::start_with_stderr(program, arguments, Stdio::piped())
    }

    /// As [`Program::start`], with another standard error, which is not part of the output unless it is a pipe.
    pub fn start_with_stderr(program: &str, arguments: &[&str], stderr: Stdio) -> Program {
        let program = find(program).unwrap_or_else(|| program.into());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        Program::new(command.spawn().expect("setpriv runs"))
    }

    fn new(mut child: Child) -> Program {
        let (stdout, output) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<String>>::default());
        let mut readers = Vec::new();
        if let Some(stream) = child.stdout.take() {
            readers.push(read(stream, vec![Arc::clone(&stdout), Arc::clone(&output)]));
        }
        if let Some(stream) = child.stderr.take() {
            readers.push(read(stream, vec![Arc::clone(&output)]));
        }
        Program { child, readers, stdout, output }
    }

    /// Returns what it has printed so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed these words.
    pub fn wait_for(&mut self, words: &str) {
        let waited = eventually(|| self.output().contains(words) || !self.is_running());
        assert!(waited && self.output().contains(words), "no {words:?} in: {}", self.output());
    }

    /// Returns whether it still runs. After false, the output is complete.
    pub fn is_running(&mut self) -> bool {
        let is_running = self.child.try_wait().unwrap().is_none();
        if !is_running {
            self.finish_output();
        }
        is_running
    }

    /// Sends a signal, given by its name.
    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Ends it with this signal, and returns its exit code and all that it printed.
    pub fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let code = self.wait_for_end(signal);
        (code, self.output())
    }

    /// As [`Program::end`], with standard output alone.
    pub fn end_with_stdout(mut self, signal: &str) -> (Option<i32>, String) {
        let code = self.wait_for_end(signal);
        let stdout = self.stdout.lock().unwrap().clone();
        (code, stdout)
    }

    fn wait_for_end(&mut self, signal: &str) -> Option<i32> {
        // Its number belongs to another program once it has been waited for.
        if self.is_running() {
            self.signal(signal);
        }
        assert!(eventually(|| !self.is_running()), "it goes on after {signal}: {}", self.output());
        self.child.wait().unwrap().code()
    }

    /// A program that it started may have the output, too, and go on.
    fn finish_output(&mut self) {
        let ended = eventually(|| self.readers.iter().all(JoinHandle::is_finished));
        assert!(ended, "its output has no end: {}", self.output());
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a thread that appends a stream to these texts by whole lines; otherwise a line of the other stream could be
/// inserted between the parts of one.
fn read(stream: impl Read + Send + 'static, texts: Vec<Arc<Mutex<String>>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(1..) = stream.read_until(b'\n', &mut line) {
            let words = String::from_utf8_lossy(&line);
            texts.iter().for_each(|text| text.lock().unwrap().push_str(&words));
            line.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_has_ended_gets_no_signal() {
        let mut program = Program::start("sh", &["-c", "echo done; exit 3"]);
        assert!(eventually(|| !program.is_running()));
        assert_eq!(program.end("TERM"), (Some(3), "done\n".to_owned()));
    }
}
