//! A client's connection: a byte stream with time limits.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::descriptors;

pub trait Connection: io::Read + io::Write + Send {
    /// Sets the time limits of reading and writing.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;

    /// The user of the process at the other end, if it is on this machine.
    fn peer_user(&self) -> Option<u32> {
        None
    }

    /// Another descriptor of it.
    fn share(&self) -> io::Result<UnixStream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends descriptors with the first of these bytes; returns how many bytes were sent.
    fn send_with(&self, _bytes: &[u8], _descriptors: &[OwnedFd]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Connection for UnixStream {
    fn peer_user(&self) -> Option<u32> {
        descriptors::peer_user(self).ok()
    }

    fn share(&self) -> io::Result<UnixStream> {
        self.try_clone()
    }

    fn send_with(&self, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
        descriptors::send(self, bytes, descriptors)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}

impl Connection for TcpStream {
    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(timeout))?;
        self.set_write_timeout(Some(timeout))
    }
}
