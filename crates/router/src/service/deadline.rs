//! A time limit for a whole exchange: one for each system call would let a client that sends a byte now and then stay
//! for hours.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::Connection;

/// A connection that fails once its time is up.
pub struct Timed<'a> {
    connection: &'a mut dyn Connection,
    patience: Duration,
    until: Instant,
}

impl<'a> Timed<'a> {
    /// So long from now on.
    pub fn new(connection: &'a mut dyn Connection, patience: Duration) -> Timed<'a> {
        Timed { connection, patience, until: Instant::now() + patience }
    }

    /// So long again: another exchange begins.
    pub fn renew(&mut self) {
        self.until = Instant::now() + self.patience;
    }

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
