//! Messages to the service manager that started this process, by the protocol of systemd's `sd_notify`. Without a manager
//! nothing is sent.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::log;

/// The variable that names the manager's socket; a name that begins with `@` is in the abstract namespace.
const SOCKET: &str = "NOTIFY_SOCKET";

/// This process is the service's main one from now on: the manager need not restart the service when the one before ends.
pub fn main_process() {
    notify(&format!("MAINPID={}", std::process::id()));
}

/// The service works.
pub fn ready() {
    notify("READY=1");
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(&socket, state) {
        log::warning(&format!("the service manager is not told {state}: {error}"));
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
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
}
