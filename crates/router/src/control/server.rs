//! The router's end of the control socket: reads requests, and writes the answers.

use std::io::{self, BufReader, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Answer, MAX_REQUEST, line, read_line, write_line};
use crate::service::{Connection, Listener, Service, Timed};

/// The time that a client has to send a request, and again to take the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time of a client that the router depends on; it is longer than any process runs.
const PATIENCE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Answers requests. Each client has its own responder, so that what the client started ends with its connection.
pub trait Responder {
    /// Answers one request. It must not wait for anything that the client does.
    fn answer(&mut self, request: Request) -> Answer;

    /// Takes the descriptors that go with the last answer.
    fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// The last answer was sent. If it cannot be sent, or the client has closed the connection, this is not called.
    fn sent(&mut self) {}

    /// Whether the client may take as long as it likes for its next request.
    fn is_patient(&self) -> bool {
        false
    }

    /// The client has closed its end of the connection; the other end is closed when this returns.
    fn end(&mut self, _connection: &Timed<'_>) {}
}

/// Serves the control socket until the service is dropped. `responder` gets the user of the client's process, if it is known.
pub fn start<R: Responder>(
    listener: Listener,
    responder: impl Fn(Option<u32>) -> R + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| {
        let mut responder = responder(connection.peer_user());
        // An error concerns the client alone: it has closed the connection, or its time is up.
        let _ = converse(&mut *connection, &mut responder, TIMEOUT);
    };
    Service::start("control", listener, Arc::new(handler), refuse)
}

fn refuse(connection: &mut dyn Connection) {
    let busy = Answer::Error("too many clients at once; try again".into());
    let _ = write_line(&mut Timed::new(connection, Duration::from_millis(10)), &busy);
}

fn converse(
    connection: &mut dyn Connection,
    responder: &mut impl Responder,
    timeout: Duration,
) -> io::Result<()> {
    let mut stream = BufReader::new(Timed::new(connection, timeout));
    loop {
        stream.get_mut().renew(if responder.is_patient() { PATIENCE } else { timeout });
        let line = read_line(&mut stream, MAX_REQUEST);
        stream.get_mut().renew(timeout);
        match line {
            Ok(Some(line)) => {
                let answer = answer(&line, responder);
                // The time that the router needed for its answer is not the client's.
                stream.get_mut().renew(timeout);
                write_answer(stream.get_mut(), &answer, &responder.take_descriptors())?;
                responder.sent();
            }
            Ok(None) => {
                responder.end(stream.get_ref());
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return write_line(stream.get_mut(), &Answer::refused(format!("{error}; ask for less")));
            }
            Err(error) => return Err(error),
        }
    }
}

fn write_answer(stream: &mut Timed<'_>, answer: &Answer, descriptors: &[OwnedFd]) -> io::Result<()> {
    let line = line(answer)?;
    let sent = if descriptors.is_empty() { 0 } else { stream.send_with(&line, descriptors)? };
    stream.write_all(line.get(sent..).unwrap_or_default())
}

fn answer(line: &[u8], responder: &mut impl Responder) -> Answer {
    match serde_json::from_slice::<Request>(line) {
        Ok(request) => responder.answer(request),
        Err(error) => Answer::refused(format!("not a request: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    /// Answers later than a client has time, or when the client has gone.
    #[derive(Default)]
    struct Slow {
        client: Option<UnixStream>,
        sent: usize,
    }

    impl Responder for Slow {
        fn answer(&mut self, _request: Request) -> Answer {
            match self.client.take() {
                Some(client) => drop(client),
                None => thread::sleep(2 * SHORT),
            }
            Answer::Ok(().into())
        }

        fn sent(&mut self) {
            self.sent += 1;
        }
    }

    fn request(client: &mut UnixStream) {
        write_line(client, &Request::Counters).unwrap();
    }

    #[test]
    fn a_client_gets_an_answer_that_took_long() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        request(&mut client);
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut responder = Slow::default();
        converse(&mut server, &mut responder, SHORT).unwrap();
        let answer = read_line(&mut BufReader::new(client), 100).unwrap();
        assert_eq!((answer, responder.sent), (Some(b"{\"ok\":null}".to_vec()), 1));
    }

    #[test]
    fn an_answer_to_a_client_that_has_gone_is_not_sent() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        request(&mut client);
        let mut responder = Slow { client: Some(client), sent: 0 };
        let error = converse(&mut server, &mut responder, TIMEOUT).unwrap_err();
        assert_eq!((error.kind(), responder.sent), (io::ErrorKind::BrokenPipe, 0));
    }
}
