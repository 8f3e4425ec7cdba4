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

    /// Whether the client may take as long as it likes for its next request.
    fn is_patient(&self) -> bool {
        false
    }

    /// The client has closed its end of the connection; the other end is closed when this returns.
    fn end(&mut self) {}
}

/// Serves the control socket until the service is dropped. `responder` gets the user of the client's process, if it is known.
pub fn start<R: Responder>(
    listener: Listener,
    responder: impl Fn(Option<u32>) -> R + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| {
        let mut responder = responder(connection.peer_user());
        // An error concerns the client alone: it has closed the connection, or its time is up.
        let _ = converse(&mut *connection, &mut responder);
    };
    Service::start("control", listener, Arc::new(handler), refuse)
}

fn refuse(connection: &mut dyn Connection) {
    let busy = Answer::Error("too many clients at once; try again".into());
    let _ = write_line(&mut Timed::new(connection, Duration::from_millis(10)), &busy);
}

fn converse(connection: &mut dyn Connection, responder: &mut impl Responder) -> io::Result<()> {
    let mut stream = BufReader::new(Timed::new(connection, TIMEOUT));
    loop {
        stream.get_mut().renew(if responder.is_patient() { PATIENCE } else { TIMEOUT });
        let line = read_line(&mut stream, MAX_REQUEST);
        stream.get_mut().renew(TIMEOUT);
        match line {
            Ok(Some(line)) => {
                let answer = answer(&line, responder);
                write_answer(stream.get_mut(), &answer, &responder.take_descriptors())?;
            }
            Ok(None) => {
                responder.end();
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
