//! The HTTP server that Prometheus scrapes: one request a connection, one page. hyper speaks HTTP; [`crate::service`] has
//! the threads, the limit of clients and the deadlines.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, ready};
use std::io::{self, Read as _, Write as _};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};

use crate::service::{Connection, Listener, Service, Timed};

/// The time that a client has for its request and to take the page.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the request line and the headers together.
const MAX_REQUEST: usize = 16 << 10;
/// The content type of metrics: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves `/metrics` until the service is dropped.
pub fn start<E: Display>(
    listener: Listener,
    page: impl Fn() -> Result<String, E> + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| serve(&mut *connection, &page);
    Service::start("metrics", listener, Arc::new(handler), refuse)
}

/// Answers before the request is read: a client that is refused must not be waited for.
fn refuse(connection: &mut dyn Connection) {
    const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
        Content-Length: 25\r\nConnection: close\r\n\r\ntoo many clients at once\n";
    let _ = Timed::new(connection, Duration::from_millis(10)).write_all(BUSY);
}

fn serve<E: Display>(connection: &mut dyn Connection, page: &impl Fn() -> Result<String, E>) {
    let is_answered = Cell::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        is_answered.set(true);
        ready(Ok::<_, Infallible>(answer(&request, page)))
    });
    let stream = BlockingStream { stream: Timed::new(connection, TIMEOUT), is_answered: &is_answered };
    // With `half_close`, hyper does not read ahead while it answers: the read would block until the client's deadline.
    let serving = http1::Builder::new()
        .half_close(true)
        .keep_alive(false)
        .title_case_headers(true)
        .header_read_timeout(None)
        .max_buf_size(MAX_REQUEST)
        .serve_connection(stream, service);
    drive(serving);
}

fn answer<E: Display>(
    request: &Request<Incoming>,
    page: &impl Fn() -> Result<String, E>,
) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match page() {
            Ok(text) => response(StatusCode::OK, OPEN_METRICS, text),
            Err(error) => response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{error}\n")),
        },
        (&Method::GET | &Method::HEAD, _) => {
            response(StatusCode::NOT_FOUND, PLAIN, "only /metrics is here\n".into())
        }
        _ => response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n".into()),
    }
}

fn response(status: StatusCode, content: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

/// Polls a connection until it ends. Its stream blocks, so it is rarely pending: only after many steps, when it yields to
/// other tasks. The deadline ends it however that goes on.
fn drive(connection: impl Future) {
    let mut connection = pin!(connection);
    let mut context = Context::from_waker(Waker::noop());
    let until = Instant::now() + TIMEOUT;
    // The result does not matter: an error concerns the client alone, which closed the connection or took too long.
    while connection.as_mut().poll(&mut context).is_pending() && Instant::now() < until {
        thread::yield_now();
    }
}

/// Presents a blocking stream as one of hyper's: each call is ready when it returns.
///
/// The stream ends for hyper once the request is answered. Otherwise hyper would wait for a body that the client announced
/// and has not sent, before it sends the answer.
struct BlockingStream<'a> {
    stream: Timed<'a>,
    is_answered: &'a Cell<bool>,
}

impl Read for BlockingStream<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_answered.get() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; 4096];
        let most = bytes.len().min(buffer.remaining());
        Poll::Ready(self.stream.read(&mut bytes[..most]).map(|count| buffer.put_slice(&bytes[..count])))
    }
}

impl Write for BlockingStream<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.stream.write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.flush())
    }

    /// Does nothing: the connection is closed when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
