//! The router's end of the control socket.

use std::io::{self, BufReader};
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Answer, LONGEST_REQUEST, read_line, write_line};
use crate::service::{Connection, Listener, Service, Timed};

/// A client has so long to send a request, and again so long to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who answers: one for each client, so that what a client set going ends with it.
pub trait Responder {
    /// The answer to one request. It must not wait for anything the client does.
    fn answer(&mut self, request: Request) -> Answer;
}

/// Serves the control socket until the service is dropped.
pub fn start<R: Responder>(
    listener: Listener,
    responder: impl Fn() -> R + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| {
        // An error is the client's: it is gone, or its time is up.
        let _ = converse(&mut *connection, &mut responder());
    };
    Service::start("control", listener, Arc::new(handler), refuse)
}

fn refuse(connection: &mut dyn Connection) {
    let busy = Answer::Error("too many clients at once; try again".into());
    let _ = write_line(&mut Timed::new(connection, Duration::from_millis(10)), &busy);
}

fn converse(connection: &mut dyn Connection, responder: &mut impl Responder) -> io::Result<()> {
    let mut stream = BufReader::new(Timed::new(connection, PATIENCE));
    loop {
        stream.get_mut().renew();
        let line = read_line(&mut stream, LONGEST_REQUEST);
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
