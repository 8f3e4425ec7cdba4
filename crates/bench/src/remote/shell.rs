//! Lines for the shell of a host, with the lines that undo them.

use std::fmt::Write;
use std::time::Duration;

use super::error::RemoteError;
use super::session::Session;
use super::ssh::SshHost;

/// The first line that the shell prints of its own.
const READY: &str = "fullview: ready";
const FAILED: &str = "fullview: failed";
/// Its last line, when the lines that undo the others have ended.
const STOPPED: &str = "fullview: stopped";
/// Starting a device may load a kernel module or wait for a daemon.
const START: Duration = Duration::from_secs(120);
/// Stopping it may wait for the same.
const STOP: Duration = Duration::from_secs(120);

/// Lines that were run, and lines that run when this value is dropped, or when the connection is lost.
pub struct RemoteLines {
    session: Session,
    is_stopped: bool,
}

impl RemoteLines {
    /// Runs the first lines in the shell of the host, and waits until they have ended. If one of them fails, the last lines
    /// run at once.
    pub fn start(host: &SshHost, first: &[String], last: &[String]) -> Result<RemoteLines, RemoteError> {
        let session = Session::start(&host.node, host.session("exec sh"))?;
        session.send(&script(first, last))?;
        session.keep_alive();
        // The last lines have their time after a failure too.
        let lines = RemoteLines { session, is_stopped: false };
        let failed =
            |said| RemoteError::Shell { node: host.node.clone(), what: "its start lines failed", said };
        match lines.session.line(START)?.as_str() {
            READY => Ok(lines),
            _ => Err(failed(lines.session.said())),
        }
    }

    /// Refuses to go on if the connection was lost: then the last lines have run.
    pub fn check(&self) -> Result<(), RemoteError> {
        self.session.check()
    }

    /// Runs the last lines. It is an error if they take too long, because the next device would start beside them.
    pub fn stop(mut self) -> Result<(), RemoteError> {
        self.is_stopped = true;
        wait_for_stop(&self.session, STOP)
    }
}

impl Drop for RemoteLines {
    fn drop(&mut self) {
        if !self.is_stopped {
            // A failure cannot be reported from here.
            let _ = wait_for_stop(&self.session, STOP);
        }
    }
}

/// Not until the session ends: a daemon that the lines start can hold its output open.
fn wait_for_stop(session: &Session, within: Duration) -> Result<(), RemoteError> {
    session.end_input();
    session.line(within).map(drop).map_err(|error| match error {
        RemoteError::Silent { node, .. } => {
            RemoteError::Shell { node, what: "its stop lines take too long", said: session.said() }
        }
        lost => lost,
    })
}

/// Waits until the input has ended, or has said nothing for long, which only a lost connection does.
pub const LIFELINE: &str = "lifeline() {
if command -v timeout; then while [ -n \"$(timeout 30 head -n 1)\" ]; do :; done; else cat; fi >/dev/null
}";

/// Signals that do not keep the last lines from running. SIGTERM is not ignored, because what the lines start would ignore it too.
const TRAPS: &str = "trap '' HUP INT PIPE; trap : TERM";

/// One compound command, which a shell reads as a whole before it runs any of it: then its input is only the lifeline. A
/// failure ends a subshell only outside of conditions.
fn script(first: &[String], last: &[String]) -> String {
    let [first, last] = [first, last].map(|lines| lines.join("\n"));
    format!(
        "{{ {TRAPS}\n{LIFELINE}\n(\nset -e\n{first}\n) </dev/null >&2\n\
         if [ $? -eq 0 ]; then echo '{READY}'; lifeline; else echo '{FAILED}'; fi\n\
         (\n:\n{last}\n) </dev/null >&2\necho '{STOPPED}'\nexit; }}\n"
    )
}

/// A folder on a host that is removed with everything in it when this value is dropped, or when the connection is lost.
pub struct RemoteFolder {
    pub path: String,
    _session: Session,
}

const FOLDER: &str = "umask 077; d=$(mktemp -d /tmp/fullview.XXXXXXXXXX) || exit 1
echo \"$d\"; lifeline; rm -rf \"$d\"; exit; }
";

impl RemoteFolder {
    pub fn make(host: &SshHost) -> Result<RemoteFolder, RemoteError> {
        let session = Session::start(&host.node, host.session("exec sh"))?;
        session.send(&format!("{{ {TRAPS}\n{LIFELINE}\n{FOLDER}"))?;
        session.keep_alive();
        let path = session.line(START)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if !path.starts_with("/tmp/fullview.") || !path.chars().all(fits) {
            let (node, said) = (host.node.clone(), format!("{path:?} {}", session.said()));
            return Err(RemoteError::Shell { node, what: "mktemp made no folder", said });
        }
        Ok(RemoteFolder { path, _session: session })
    }
}

/// Runs one line in the shell of a host, and returns what it prints.
pub fn output(host: &SshHost, line: &str) -> Result<String, RemoteError> {
    let session = Session::start(&host.node, host.session("exec sh"))?;
    session.send(&format!("{{ {line}\n}} </dev/null; echo; echo '{READY}'; exit\n"))?;
    let mut text = String::new();
    loop {
        match session.line(START)?.as_str() {
            READY => return Ok(text.trim().to_owned()),
            line => _ = writeln!(text, "{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// What a shell prints and logs that gets a script and then the end of its input.
    fn run(first: &str, last: &str) -> [String; 2] {
        let mut shell = Command::new("sh");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let text = script(&[first.to_owned()], &[last.to_owned()]);
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let done = shell.wait_with_output().unwrap();
        [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap().trim().to_owned())
    }

    #[test]
    fn the_last_lines_run_at_the_end_of_the_input_and_after_a_failure() {
        let printed = |first: &str| format!("{first}\n{STOPPED}");
        assert_eq!(run("echo 'one'", "echo two"), [printed(READY), "one\ntwo".into()]);
        assert_eq!(run("false\necho never", "echo two"), [printed(FAILED), "two".into()]);
        assert_eq!(run("", "false\necho two"), [printed(READY), "two".into()]);
    }

    #[test]
    fn a_signal_keeps_no_lines_from_running_and_ends_what_they_start() {
        assert_eq!(
            run("kill -TERM $$; echo on", "echo two"),
            [format!("{READY}\n{STOPPED}"), "on\ntwo".into()]
        );
        let [_, log] = run("sh -c 'kill -TERM $$; echo lives' || echo ended", "echo two");
        assert!(log.ends_with("ended\ntwo") && !log.contains("lives"), "{log}");
    }

    #[test]
    fn last_lines_that_take_too_long_are_an_error_and_a_daemon_is_none() {
        let stopped = |last: &str| {
            let mut shell = Command::new("sh");
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let session = Session::start("dut", shell).unwrap();
            session.send(&script(&[], &[last.to_owned()])).unwrap();
            assert_eq!(session.line(START).unwrap(), READY);
            wait_for_stop(&session, Duration::from_secs(1))
        };
        stopped("sleep 3 &").unwrap();
        let error = stopped("echo waiting; sleep 3").unwrap_err().to_string();
        assert!(error.contains("take too long") && error.contains("waiting"), "{error}");
    }
}
