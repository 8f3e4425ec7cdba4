//! An HTTP server that answers every request with the same bytes, and counts the answers.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::bed::RIGHT;
use super::error::VethError;
use crate::testbed::Namespace;

/// The port that it listens at.
pub const PORT: u16 = 80;
/// How often a thread looks whether the server has ended.
const POLL: Duration = Duration::from_millis(50);

/// A server in a namespace. It ends when this value is dropped.
pub struct HttpServer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Vec<u8>,
    answered: AtomicU64,
    ended: AtomicBool,
}

impl HttpServer {
    /// Answers requests with a body of so many bytes.
    pub fn start(host: &Namespace, bytes: u16) -> Result<HttpServer, VethError> {
        let listener = host.within(|| Ok(TcpListener::bind((RIGHT, PORT))))?.map_err(VethError::Server)?;
        listener.set_nonblocking(true).map_err(VethError::Server)?;
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + usize::from(bytes), b'.');
        let shared = Arc::new(Shared { answer, answered: AtomicU64::new(0), ended: AtomicBool::new(false) });
        let served = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || accept(&listener, &served)));
        Ok(HttpServer { shared, thread })
    }

    /// Requests answered since the start.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // A thread that panicked has printed why.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.ended.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let served = Arc::clone(shared);
                thread::spawn(move || serve(stream, &served));
            }
            Err(_) => thread::sleep(POLL),
        }
    }
}

/// Serves one connection until the client or the server ends.
fn serve(stream: TcpStream, shared: &Shared) {
    let ready = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(POLL)));
    let (Ok(()), Ok(mut out)) = (ready, stream.try_clone()) else { return };
    let mut requests = BufReader::new(stream);
    while next_request(&mut requests, shared) && out.write_all(&shared.answer).is_ok() {
        shared.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads a request up to the empty line that ends it. Returns whether there was one.
fn next_request(requests: &mut BufReader<impl Read>, shared: &Shared) -> bool {
    let mut line = Vec::new();
    loop {
        match requests.read_until(b'\n', &mut line) {
            Ok(0) => return false,
            Ok(_) if line == b"\r\n" => return true,
            Ok(_) => line.clear(),
            Err(error) if is_silence(error.kind()) && !shared.ended.load(Ordering::Relaxed) => {}
            Err(_) => return false,
        }
    }
}

fn is_silence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
