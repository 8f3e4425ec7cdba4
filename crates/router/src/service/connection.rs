//! A client's connection: a byte stream with time limits.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub trait Connection: io::Read + io::Write + Send {
    /// Sets the time limits of reading and writing.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;
}

impl Connection for UnixStream {
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
