//! The router's end of the control socket: reads requests, and writes the answers.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Answer, MAX_REQUEST, read_line, write_line};
use crate::service::{Connection, Listener, Service, Timed};

/// The time that a client has to send a request, and again to take the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Answers requests. Each client has its own responder, so that what the client started ends with its connection.
pub trait Responder {
    /// Answers one request. It must not wait for anything that the client does.
    fn answer(&mut self, request: Request) -> Answer;
}

/// Serves the control socket until the service is dropped.
pub fn start<R: Responder>(
    listener: Listener,
    responder: impl Fn() -> R + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| {
        // An error concerns the client alone: it has closed the connection, or its time is up.
        let _ = converse(&mut *connection, &mut responder());
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
        stream.get_mut().renew();
        let line = read_line(&mut stream, MAX_REQUEST);
        stream.get_mut().renew();
        match line {
            Ok(Some(line)) => write_line(stream.get_mut(), &answer(&line, responder))?,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return write_line(stream.get_mut(), &Answer::refused(format!("{error}; ask for less")));
            }
            Err(error) => return Err(error),
        }
    }
}

fn answer(line: &[u8], responder: &mut impl Responder) -> Answer {
    match serde_json::from_slice::<Request>(line) {
        Ok(request) => responder.answer(request),
        Err(error) => Answer::refused(format!("not a request: {error}")),
    }
}
