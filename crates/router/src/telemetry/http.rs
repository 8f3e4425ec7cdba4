//! The smallest HTTP server that Prometheus can scrape: one GET a connection, one page.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::service::{Connection, Listener, Service, Timed};

/// A client has so long for its request and to take the page.
const PATIENCE: Duration = Duration::from_secs(10);
/// Request line and headers, together.
const LONGEST_REQUEST: u64 = 16 << 10;
/// What the text is: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves `/metrics` until the service is dropped.
pub fn start<E: Display>(
    listener: Listener,
    page: impl Fn() -> Result<String, E> + Send + Sync + 'static,
) -> io::Result<Service> {
    let handler = move |mut connection: Box<dyn Connection>| {
        // An error is the client's: it is gone, or its time is up.
        let _ = serve(&mut *connection, &page);
    };
    Service::start("metrics", listener, Arc::new(handler), refuse)
}

fn refuse(connection: &mut dyn Connection) {
    let mut stream = Timed::new(connection, Duration::from_millis(10));
    let _ = respond(&mut stream, "503 Service Unavailable", PLAIN, "too many clients at once\n", true);
}

fn serve<E: Display>(
    connection: &mut dyn Connection,
    page: &impl Fn() -> Result<String, E>,
) -> io::Result<()> {
    let mut stream = BufReader::new(Timed::new(connection, PATIENCE));
    let request = read_request(&mut stream)?;
    let stream = stream.get_mut();
    let with_body = !request.starts_with("HEAD ");
    match request.split_whitespace().collect::<Vec<_>>()[..] {
        ["GET" | "HEAD", "/metrics", version] if version.starts_with("HTTP/1.") => match page() {
            Ok(text) => respond(stream, "200 OK", CONTENT, &text, with_body),
            Err(error) => respond(stream, "503 Service Unavailable", PLAIN, &format!("{error}\n"), with_body),
        },
        ["GET" | "HEAD", _, version] if version.starts_with("HTTP/1.") => {
            respond(stream, "404 Not Found", PLAIN, "only /metrics is here\n", with_body)
        }
        [_, _, version] if version.starts_with("HTTP/1.") => {
            respond(stream, "405 Method Not Allowed", PLAIN, "only GET and HEAD\n", with_body)
        }
        _ => respond(stream, "400 Bad Request", PLAIN, "this is no HTTP/1 request\n", with_body),
    }
}

/// The request line. The headers are read, so that closing does not reset the connection, and passed over.
fn read_request(stream: &mut impl BufRead) -> io::Result<String> {
    let mut input = stream.take(LONGEST_REQUEST);
    let mut first = Vec::new();
    input.read_until(b'\n', &mut first)?;
    let mut header = Vec::new();
    while input.read_until(b'\n', &mut header)? > 0 && !matches!(&header[..], b"\r\n" | b"\n") {
        header.clear();
    }
    Ok(String::from_utf8_lossy(&first).into_owned())
}

fn respond(
    stream: &mut impl Write,
    status: &str,
    content: &str,
    body: &str,
    with_body: bool,
) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(if with_body { body.as_bytes() } else { &[] })
}
