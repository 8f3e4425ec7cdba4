//! A time limit for a whole exchange. A limit for each system call would let a client that sends a byte now and then keep
//! its thread for hours.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::connection::Connection;

/// A connection that fails once its time is up.
pub struct Timed<'a> {
    connection: &'a mut dyn Connection,
    until: Instant,
}

impl<'a> Timed<'a> {
    /// A connection that fails once `timeout` has passed.
    pub fn new(connection: &'a mut dyn Connection, timeout: Duration) -> Timed<'a> {
        Timed { connection, until: Instant::now() + timeout }
    }

    /// Begins another exchange, which has this time.
    pub fn renew(&mut self, timeout: Duration) {
        self.until = Instant::now() + timeout;
    }

    /// Sends descriptors with the first of these bytes; returns how many bytes were sent.
    pub fn send_with(&mut self, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
        self.limit()?;
        self.connection.send_with(bytes, descriptors)
    }

    /// Another descriptor of the connection, by which each system call has this time.
    pub fn share(&self, timeout: Duration) -> io::Result<UnixStream> {
        let stream = self.connection.share()?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    }

    /// Limits the next system call to the time that is left.
    fn limit(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.connection.set_timeout(left)
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.connection.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.connection.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.connection.flush()
    }
}
