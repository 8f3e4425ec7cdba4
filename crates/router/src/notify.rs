//! Messages to the service manager that started this process, by the protocol of systemd's `sd_notify`. Without a manager
//! nothing is sent.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::log;

/// The variable that names the manager's socket; a name that begins with `@` is in the abstract namespace.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The time after which the manager restarts the service if it was not told that it works, in microseconds; and the process that
/// has to tell it, if that is not any.
const WATCHDOG_TIMEOUT: &str = "WATCHDOG_USEC";
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// This process is the service's main one from now on: the manager need not restart the service when the one before ends.
pub fn main_process() {
    notify(&format!("MAINPID={}", std::process::id()));
}

/// The service works.
pub fn ready() {
    notify("READY=1");
}

/// After how long the manager restarts a service whose main process this is, unless it was told that the service works.
pub fn watchdog_timeout() -> Option<Duration> {
    let [timeout, process] = [WATCHDOG_TIMEOUT, WATCHDOG_PROCESS].map(|name| std::env::var(name).ok());
    timeout_for(std::process::id(), timeout.as_deref(), process.as_deref())
}

fn timeout_for(this: u32, timeout: Option<&str>, process: Option<&str>) -> Option<Duration> {
    let is_this = process.is_none_or(|process| process.parse() == Ok(this));
    let micros = timeout?.parse().ok().filter(|micros| is_this && *micros > 0)?;
    Some(Duration::from_micros(micros))
}

/// Tells the manager again and again that the service works.
pub struct Heartbeat {
    manager: SocketAddr,
    socket: UnixDatagram,
    timeout: Duration,
    /// When the manager has to be told again.
    due: Duration,
}

impl Heartbeat {
    /// For a manager that restarts the service after `timeout`; `None` without a manager.
    pub fn start(timeout: Duration) -> Option<Heartbeat> {
        let socket = std::env::var_os(SOCKET)?;
        let started = Heartbeat::of(&socket, timeout);
        started.inspect_err(|error| warn_untold(ALIVE, error)).ok()
    }

    fn of(manager: &OsStr, timeout: Duration) -> io::Result<Heartbeat> {
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not stop the router.
        socket.set_nonblocking(true)?;
        Ok(Heartbeat { manager: address(manager)?, socket, timeout, due: Duration::ZERO })
    }

    /// The time after which the manager restarts the service.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Tells the manager that the service works, if half of the timeout has passed since the last time. Call it several times
    /// within each half.
    pub fn beat(&mut self, now: Duration) {
        if now < self.due {
            return;
        }
        match self.socket.send_to_addr(ALIVE.as_bytes(), &self.manager) {
            // The next call tries again.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => warn_untold(ALIVE, &error),
            Ok(_) => {}
        }
        self.due = now + self.timeout / 2;
    }
}

const ALIVE: &str = "WATCHDOG=1";

fn warn_untold(state: &str, error: &io::Error) {
    log::warning(&format!("the service manager is not told {state}: {error}"));
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(&socket, state) {
        warn_untold(state, &error);
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address(socket)?).map(drop)
}

fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a manager at this socket receives.
    fn received(at: &SocketAddr, name: &OsStr) -> String {
        let manager = UnixDatagram::bind_addr(at).unwrap();
        send(name, "READY=1").unwrap();
        let mut message = [0; 64];
        let len = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..len]).into_owned()
    }

    #[test]
    fn messages_reach_sockets_with_a_file_and_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        assert_eq!(received(&SocketAddr::from_pathname(&path).unwrap(), path.as_os_str()), "READY=1");
        let name = format!("fullview-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        assert_eq!(received(&address, OsStr::new(&format!("@{name}"))), "READY=1");
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }

    #[test]
    fn the_timeout_is_that_of_this_process() {
        let timeout = |timeout, process| timeout_for(7, timeout, process).map(|timeout| timeout.as_secs());
        assert_eq!(timeout(Some("10000000"), Some("7")), Some(10));
        assert_eq!(timeout(Some("10000000"), None), Some(10));
        assert_eq!(timeout(Some("10000000"), Some("8")), None);
        for wrong in [None, Some(""), Some("0"), Some("-1"), Some("ten")] {
            assert_eq!(timeout(wrong, Some("7")), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_manager_is_told_after_each_half_of_its_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_nonblocking(true).unwrap();
        let mut heartbeat = Heartbeat::of(path.as_os_str(), Duration::from_secs(10)).unwrap();
        let mut told = Vec::new();
        for second in 0..13 {
            heartbeat.beat(Duration::from_secs(second));
            let mut message = [0; 64];
            if let Ok(len) = manager.recv(&mut message) {
                assert_eq!(&message[..len], b"WATCHDOG=1");
                told.push(second);
            }
        }
        assert_eq!(told, [0, 5, 10]);
    }

    #[test]
    fn a_manager_that_does_not_read_stops_nothing_and_is_told_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut heartbeat = Heartbeat::of(path.as_os_str(), Duration::from_secs(2)).unwrap();
        let mut now = Duration::ZERO;
        while heartbeat.due >= now {
            heartbeat.beat(now);
            now += Duration::from_secs(1);
        }
        manager.recv(&mut [0; 64]).unwrap();
        heartbeat.beat(now);
        assert_eq!(heartbeat.due, now + Duration::from_secs(1));
    }
}
