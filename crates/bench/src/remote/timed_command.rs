//! A command in the shell of a host that has a limited time.

use std::time::Duration;

use super::error::RemoteError;
use super::session::Session;
use super::shell::LIFELINE;
use super::ssh::SshHost;

/// What the shell prints of its own: when the command has begun, and before its status.
const BEGAN: &str = "fullview: began";
const ENDED: &str = "fullview: ended ";
/// What `timeout` ends with when it has ended a command: by SIGTERM, or by SIGKILL.
const TIMED_OUT: [i32; 2] = [124, 137];
/// The status of a command that was ended by SIGTERM or SIGKILL.
const SIGNALLED: [i32; 2] = [143, 137];
/// The time that `timeout` leaves between both, and more.
const KILLED: Duration = Duration::from_secs(30);

/// A command that runs. It ends when this value is dropped, or the connection is lost.
pub struct TimedCommand {
    session: Session,
    seconds: u64,
    lines: Vec<String>,
}

/// What comes from a command.
pub enum CommandOutput {
    Line(String),
    /// Its status, after its last line.
    Ended(i32),
}

/// What a command has printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    pub text: String,
    pub status: i32,
    seconds: u64,
}

impl TimedCommand {
    pub fn start(host: &SshHost, command: &str, seconds: u64) -> Result<TimedCommand, RemoteError> {
        let session = Session::start(&host.node, host.session("exec sh"))?;
        session.send(&script(command, seconds))?;
        while session.line(KILLED)? != BEGAN {}
        session.keep_alive();
        Ok(TimedCommand { session, seconds, lines: Vec::new() })
    }

    /// Waits until it has ended.
    pub fn wait(self) -> Result<CommandEnd, RemoteError> {
        self.wait_watching(&mut |_| {})
    }

    /// The same; `watch` gets each line when it comes.
    pub fn wait_watching(mut self, watch: &mut dyn FnMut(&str)) -> Result<CommandEnd, RemoteError> {
        let within = Duration::from_secs(self.seconds) + KILLED;
        loop {
            match self.next(within)? {
                Some(status) => return Ok(self.result(status)),
                None => self.lines.last().into_iter().for_each(|line| watch(line)),
            }
        }
    }

    /// Ends it if it still runs: that it dies of the signal is no failure.
    pub fn end(mut self) -> Result<CommandEnd, RemoteError> {
        self.session.end_input();
        let status = loop {
            if let Some(status) = self.next(KILLED)? {
                break status;
            }
        };
        Ok(self.result(if SIGNALLED.contains(&status) { 0 } else { status }))
    }

    /// Keeps a line; the status if it is the last one.
    fn next(&mut self, within: Duration) -> Result<Option<i32>, RemoteError> {
        match self.read(within)? {
            CommandOutput::Ended(status) => Ok(Some(status)),
            CommandOutput::Line(line) => {
                self.lines.push(line);
                Ok(None)
            }
        }
    }

    /// The next line, which is not kept.
    pub fn read(&self, within: Duration) -> Result<CommandOutput, RemoteError> {
        let line = self.session.line(within)?;
        let status = line.strip_prefix(ENDED).and_then(|status| status.parse().ok());
        Ok(status.map_or(CommandOutput::Line(line), CommandOutput::Ended))
    }

    fn result(self, status: i32) -> CommandEnd {
        let text = self.lines.join("\n").trim_end().to_owned();
        CommandEnd { text, status, seconds: self.seconds }
    }
}

impl CommandEnd {
    /// How a command failed, with its last lines.
    pub fn failure(&self) -> Option<String> {
        let how = match self.status {
            0 => return None,
            status if TIMED_OUT.contains(&status) => format!("did not end within {} s", self.seconds),
            status => format!("ended with status {status}"),
        };
        Some(with_said(how, &self.last()))
    }

    /// That it did not say what it should, with its last lines.
    pub fn without(&self, what: &str) -> String {
        with_said(format!("did not say {what}"), &self.last())
    }

    fn last(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].to_vec()
    }
}

/// How a command ended that should not have, with its last lines.
pub fn failure_of(status: i32, last: &[String]) -> String {
    with_said(format!("ended with status {status}"), last)
}

fn with_said(how: String, last: &[impl AsRef<str>]) -> String {
    let last = last.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("; ");
    if last.is_empty() { how } else { format!("{how} and said: {last}") }
}

/// The shell ends the command when its own input ends, which is the lifeline of the session. `timeout` passes the signal to all
/// processes of the command.
fn script(command: &str, seconds: u64) -> String {
    let quoted = command.replace('\'', "'\\''");
    format!(
        "{{ trap '' HUP INT PIPE\n{LIFELINE}\nexec 3<&0\n\
         echo '{BEGAN}'\n\
         (trap - HUP INT PIPE; exec timeout -k 5 {seconds} sh -c '{quoted}' </dev/null 2>&1 3<&-) & command=$!\n\
         (lifeline; kill $command 2>/dev/null) <&3 >/dev/null 2>&1 & line=$!\n\
         wait $command; status=$?\necho; echo \"{ENDED}$status\"\nkill $line 2>/dev/null\nexit; }}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    fn shell() -> std::process::Child {
        let mut shell = Command::new("sh");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        shell.spawn().unwrap()
    }

    #[test]
    fn a_command_is_ended_with_its_input_and_by_its_time() {
        for (command, seconds, keeps_input, expected) in [
            ("echo it\\'s; exit 3", 60, true, "fullview: began\nit's\n\nfullview: ended 3\n"),
            ("sleep 60 & echo begun; wait", 1, true, "fullview: began\nbegun\n\nfullview: ended 124\n"),
            ("echo begun; sleep 60", 60, false, "fullview: began\nbegun\n\nfullview: ended 143\n"),
        ] {
            let mut shell = shell();
            let mut input = shell.stdin.take();
            input.as_mut().unwrap().write_all(script(command, seconds).as_bytes()).unwrap();
            let mut output = shell.stdout.take().unwrap();
            let mut text = String::new();
            if !keeps_input {
                let mut first = [0; "fullview: began\nbegun\n".len()];
                output.read_exact(&mut first).unwrap();
                text += std::str::from_utf8(&first).unwrap();
                input = None;
            }
            output.read_to_string(&mut text).unwrap();
            assert_eq!(text, expected, "{command}");
            drop(input);
            shell.wait().unwrap();
        }
    }

    #[test]
    fn a_failure_has_the_last_lines() {
        let end = |status| CommandEnd { text: "a\nb\n\nc\nd".into(), status, seconds: 5 };
        assert_eq!(end(0).failure(), None);
        assert_eq!(end(7).failure().unwrap(), "ended with status 7 and said: b; c; d");
        assert_eq!(end(124).failure().unwrap(), "did not end within 5 s and said: b; c; d");
    }
}
