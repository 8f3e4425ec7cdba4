//! The sockets that clients connect to: a Unix socket with its file, or a TCP port.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::connection::Connection;

/// How many clients may wait to be accepted.
const BACKLOG: i32 = 16;

/// Why a socket cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens on the socket.
    #[error("{}: another router is at work on this socket; stop it, or choose another path", .0.display())]
    InUse(PathBuf),
    /// A file of that name exists that is not a socket.
    #[error("{}: exists and is not a socket; remove it, or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The system's refusal.
    #[error("cannot listen on {at}: {source}")]
    System { at: String, source: io::Error },
}

/// A socket that clients connect to.
pub enum Listener {
    /// A Unix socket, with its file, which is removed at the end.
    Unix(UnixListener, SocketFile),
    /// A TCP port.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens on a Unix socket that only its owner and group may use. The file of a router that was killed is replaced,
    /// and missing folders are made.
    pub fn unix(path: &Path) -> Result<Listener, ListenError> {
        let failed = |source| ListenError::System { at: path.display().to_string(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        remove_stale(path)?;
        let listener = bind_private(path).map_err(failed)?;
        let file = SocketFile::of(path, Arc::default()).map_err(failed)?;
        Ok(Listener::Unix(listener, file))
    }

    /// A Unix socket that another process listens on too. Its file stays while `is_foreign` is set.
    pub fn inherit_unix(
        socket: OwnedFd,
        path: &Path,
        is_foreign: Arc<AtomicBool>,
    ) -> Result<Listener, ListenError> {
        let file = SocketFile::of(path, is_foreign);
        let file = file.map_err(|source| ListenError::System { at: path.display().to_string(), source })?;
        Ok(Listener::Unix(socket.into(), file))
    }

    /// Listens on a TCP port. For port 0 the system chooses one.
    pub fn tcp(address: SocketAddr) -> Result<Listener, ListenError> {
        let failed = |source| ListenError::System { at: address.to_string(), source };
        TcpListener::bind(address).map(Listener::Tcp).map_err(failed)
    }

    /// A copy of the socket for another process.
    pub fn share(&self) -> io::Result<SharedListener> {
        let is_foreign = match self {
            Listener::Unix(_, file) => Arc::clone(&file.is_foreign),
            Listener::Tcp(_) => Arc::default(),
        };
        Ok(SharedListener { socket: self.as_fd().try_clone_to_owned()?, address: self.address(), is_foreign })
    }

    /// The address it listens at, as text.
    pub fn address(&self) -> String {
        match self {
            Listener::Unix(_, file) => file.path.display().to_string(),
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string())
            }
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Unix(listener, _) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    pub(super) fn accept(&self) -> io::Result<Box<dyn Connection>> {
        Ok(match self {
            Listener::Unix(listener, _) => Box::new(listener.accept()?.0),
            Listener::Tcp(listener) => Box::new(listener.accept()?.0),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A socket that another process may listen on too.
pub struct SharedListener {
    pub socket: OwnedFd,
    pub address: String,
    is_foreign: Arc<AtomicBool>,
}

impl SharedListener {
    /// Leaves the socket's file to the other process.
    pub fn leave(&self) {
        self.is_foreign.store(true, Ordering::Relaxed);
    }
}

/// Binds a socket that other users cannot connect to at any moment: the mode is set before the name exists. It is set again
/// afterwards, for the process's umask has taken bits from it.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    const MODE: u32 = 0o660;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, Mode::from_raw_mode(MODE))?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Removes the socket file of a router that no longer runs.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|source| ListenError::System { at: path.display().to_string(), source }),
        Err(source) => Err(ListenError::System { at: path.display().to_string(), source }),
        Ok(_) => Err(ListenError::InUse(path.to_owned())),
    }
}

/// The file of a socket. It is removed with the socket, unless it is another socket's or another process's by then.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    is_foreign: Arc<AtomicBool>,
}

impl SocketFile {
    fn of(path: &Path, is_foreign: Arc<AtomicBool>) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.to_owned(), identity: identity(path)?, is_foreign })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_foreign.load(Ordering::Relaxed) {
            return;
        }
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If the file cannot be removed, the next router finds it stale and replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether two paths name one file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_several_paths() {
        let folder = tempfile::tempdir().unwrap();
        let (run, linked) = (folder.path().join("run"), folder.path().join("var-run"));
        fs::create_dir(&run).unwrap();
        std::os::unix::fs::symlink(&run, &linked).unwrap();
        let (control, metrics) = (run.join("edge.sock"), run.join("edge.metrics"));
        let _sockets = [&control, &metrics].map(|path| UnixListener::bind(path).unwrap());
        assert!(is_same_file(&control, &linked.join("./edge.sock")));
        assert!(!is_same_file(&control, &metrics) && !is_same_file(&run.join("absent"), &run.join("absent")));
    }
}
