//! The client's end of the control socket.

use std::io::{self, BufReader, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::request::Request;
use super::{Answer, MAX_ANSWER, read_line, write_line};
use crate::service::descriptors;

/// How long the router may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// So many bytes are read at once after the last answer.
const CHUNK: usize = 64 << 10;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The socket's mode does not let this user connect.
    #[error("{}: only its owner and group may ask this router: {source}; ask as root or as one of the group", path.display())]
    Forbidden { path: PathBuf, source: io::Error },
    /// No process listens on the socket.
    #[error("{}: no router answers here: {source}; is `fullview forward` running, and is --control the same?", path.display())]
    Absent { path: PathBuf, source: io::Error },
    /// The connection broke.
    #[error("{}: the router stopped answering: {source}", path.display())]
    Broken { path: PathBuf, source: io::Error },
    /// The answer took too long.
    #[error("{}: the router is still busy and may yet do what it was asked; `fullview show events` says whether it did", path.display())]
    Late { path: PathBuf },
    /// The answer has another form: the router is probably of another version.
    #[error("{}: an answer this program does not understand: {source}; are both of one version?", path.display())]
    Strange { path: PathBuf, source: serde_json::Error },
    /// The router refused the request.
    #[error("{0}")]
    Refused(String),
}

/// Reads what comes until the other end is closed.
fn read_to_end(stream: &mut impl Read, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => take(bytes.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A connection to a router.
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the router that listens at `path`.
    pub fn connect(path: &Path) -> Result<Client, AskError> {
        let absent = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => AskError::Forbidden { path: path.to_owned(), source },
            _ => AskError::Absent { path: path.to_owned(), source },
        };
        let stream = UnixStream::connect(path).map_err(absent)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(absent)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(absent)?;
        Ok(Client { path: path.to_owned(), stream: BufReader::new(stream) })
    }

    /// Gives the router this time for each further answer.
    pub fn wait_for(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))
    }

    /// Sends a request, and waits for the answer as JSON.
    pub fn ask_raw(&mut self, request: &Request) -> Result<Value, AskError> {
        let line = self.exchange(request).map_err(|source| self.broken(source))?;
        self.accept(&line)
    }

    /// Sends a request, and waits for an answer of that type.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, AskError> {
        let value = self.ask_raw(request)?;
        self.read(value)
    }

    /// As [`Self::ask`], with the descriptors that come with the answer.
    pub fn ask_with_descriptors<T: DeserializeOwned>(
        &mut self,
        request: &Request,
    ) -> Result<(T, Vec<OwnedFd>), AskError> {
        // Nothing is buffered: the router sends nothing but answers.
        let stream = self.stream.get_mut();
        let received =
            write_line(stream, request).and_then(|()| descriptors::receive_line(stream, MAX_ANSWER));
        let (line, descriptors) = received.map_err(|source| self.broken(source))?;
        let value = self.accept(&line)?;
        Ok((self.read(value)?, descriptors))
    }

    /// The user that the router's socket belongs to.
    pub fn server_user(&self) -> io::Result<u32> {
        descriptors::peer_user(self.stream.get_ref())
    }

    /// Closes this end of the connection, and waits until the router closes the other one. `take` gets the bytes that it sends
    /// before that.
    pub fn close(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<(), AskError> {
        let closed = self.stream.get_ref().shutdown(Shutdown::Write);
        let ended = closed.and_then(|()| read_to_end(&mut self.stream, take));
        ended.map_err(|source| self.broken(source))
    }

    fn broken(&self, source: io::Error) -> AskError {
        let path = self.path.clone();
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Late { path },
            _ => AskError::Broken { path, source },
        }
    }

    fn accept(&self, line: &[u8]) -> Result<Value, AskError> {
        match self.understand(line)? {
            Answer::Ok(value) => Ok(value),
            Answer::Error(message) => Err(AskError::Refused(message)),
        }
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T, AskError> {
        serde_json::from_value(value).map_err(|source| AskError::Strange { path: self.path.clone(), source })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        write_line(self.stream.get_mut(), request)?;
        read_line(&mut self.stream, MAX_ANSWER)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn understand(&self, line: &[u8]) -> Result<Answer, AskError> {
        serde_json::from_slice(line).map_err(|source| AskError::Strange { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_router_that_is_busy_has_not_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edge.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = Client::connect(&path).unwrap();
        client.wait_for(Duration::from_millis(10)).unwrap();
        let late = client.ask_raw(&Request::Reload).unwrap_err().to_string();
        assert!(late.contains("edge.sock: the router is still busy"), "{late}");
        drop(listener);
        let broken = client.ask_raw(&Request::Reload).unwrap_err().to_string();
        assert!(broken.contains("the router stopped answering"), "{broken}");
    }
}
