//! Connections by the system's OpenSSH client, so that the user's configuration, keys and agents apply.
//!
//! One process per host holds the connection (ControlMaster), and sessions share it. Host keys are always checked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::inventory::NodeSettings;
use crate::testbed::{OwnerFolder, start_tied, tied};

/// These come before the user's options: the first value counts.
const ALWAYS: [&str; 9] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ConnectTimeout=15",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=4",
    "ControlPersist=no",
    "ClearAllForwardings=yes",
    "RequestTTY=no",
    "LogLevel=INFO",
];
const CONNECT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// A connection to a host. It ends when this value is dropped.
pub struct SshHost {
    /// The name of the node.
    pub node: String,
    host: String,
    config: Option<PathBuf>,
    folder: tempfile::TempDir,
    master: Child,
    _owner: Arc<OwnerFolder>,
}

impl SshHost {
    /// Connects, without any question to the user.
    pub fn connect(settings: &NodeSettings, config: Option<&Path>) -> Result<SshHost, RemoteError> {
        let owner = OwnerFolder::current()?;
        let folder = owner.folder("ssh-")?;
        let log = folder.path().join("log");
        let said = File::create(&log).map_err(|error| RemoteError::Start { program: "ssh", error })?;
        let mut command = base(tied("ssh"), &folder.path().join("socket"), config);
        command.args(["-o", "ControlMaster=yes", "-N", "--", &settings.host]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let (node, host) = (settings.name.clone(), settings.host.clone());
        let config = config.map(Path::to_owned);
        let mut connected =
            SshHost { node, host, config, folder, master: start(command, "ssh")?, _owner: owner };
        connected.wait(&log)?;
        Ok(connected)
    }

    /// The socket is there when the host has let us in.
    fn wait(&mut self, log: &Path) -> Result<(), RemoteError> {
        let (began, socket) = (Instant::now(), self.socket());
        while !socket.exists() {
            let ended = self.master.try_wait().ok().flatten().is_some();
            if ended || began.elapsed() > CONNECT {
                let said = fs::read_to_string(log).unwrap_or_default();
                return Err(self.failed(&said));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A session that runs a line in the shell of the host. Its input is its lifeline.
    pub fn session(&self, line: &str) -> Command {
        let mut command = base(tied("ssh"), &self.socket(), self.config.as_deref());
        command.args(["-o", "ControlMaster=no", "-T", "--", &self.host, line]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Copies a file to the host.
    pub fn copy(&self, file: &Path, to: &str) -> Result<(), RemoteError> {
        let mut command = base(tied("scp"), &self.socket(), self.config.as_deref());
        command.args(["-o", "ControlMaster=no", "-q", "--"]).arg(file);
        command.arg(format!("{}:{to}", for_scp(&self.host))).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let failed = |said| RemoteError::Shell { node: self.node.clone(), what: "scp", said };
        let done = start(command, "scp")?.wait_with_output().map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        if done.status.success() { Ok(()) } else { Err(failed(said)) }
    }

    /// What a user can try by hand.
    fn by_hand(&self) -> String {
        let config = self.config.as_ref().map(|config| format!("-F {} ", config.display()));
        format!("ssh {}{}", config.unwrap_or_default(), self.host)
    }

    fn failed(&self, said: &str) -> RemoteError {
        let (node, host, command) = (self.node.clone(), self.host.clone(), self.by_hand());
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('@'));
        let lines: Vec<&str> = lines.collect();
        let named = |word: &str| lines.iter().find(|line| line.contains(word)).copied().unwrap_or_default();
        let last = lines.last().copied().unwrap_or("no answer").to_owned();
        if said.contains("IDENTIFICATION HAS CHANGED") {
            return RemoteError::ChangedHostKey { node, host, command, said: named("ffending").into() };
        }
        if said.contains("host key is known for") {
            return RemoteError::UnknownHostKey { node, host, command };
        }
        if said.contains("Permission denied") {
            return RemoteError::Refused { node, host, command, said: last };
        }
        RemoteError::Connect { node, host, command, said: last }
    }
}

/// A host as scp names it: an IPv6 address in brackets, because a colon separates it from the path.
fn for_scp(host: &str) -> String {
    let (user, address) = host.rsplit_once('@').map_or(("", host), |(user, address)| (user, address));
    let at = if user.is_empty() { "" } else { "@" };
    if address.contains(':') { format!("{user}{at}[{address}]") } else { host.to_owned() }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        let _ = self.master.kill();
        let _ = self.master.wait();
    }
}

fn base(mut command: Command, socket: &Path, config: Option<&Path>) -> Command {
    ALWAYS.iter().for_each(|option| _ = command.args(["-o", option]));
    command.arg("-o").arg(format!("ControlPath={}", socket.display()));
    config.into_iter().for_each(|config| _ = command.arg("-F").arg(config));
    command
}

/// Starts a program.
pub fn start(command: Command, program: &'static str) -> Result<Child, RemoteError> {
    start_tied(command).map_err(|error| RemoteError::Start { program, error })
}

#[cfg(test)]
mod tests {
    use super::for_scp;

    #[test]
    fn scp_gets_ipv6_addresses_in_brackets() {
        for (host, name) in [
            ("lab", "lab"),
            ("root@192.0.2.1", "root@192.0.2.1"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("root@2001:db8::1", "root@[2001:db8::1]"),
        ] {
            assert_eq!(for_scp(host), name);
        }
    }
}
