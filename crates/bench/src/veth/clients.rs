//! The clients on the left host and their servers on the right one.

use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::bed::{RIGHT, VethBed};
use super::error::VethError;
use super::iperf::{Report, SETTLE};
use super::load::{ClientLoad, ClientTurn};
use super::server::HttpServer;
use crate::settings::ClientName;
use crate::testbed::{Namespace, start_tied, tied};

/// A server listens within a small part of this time.
const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// More requests than a turn has room for: curl is stopped at its end.
const REQUESTS: &str = "[1-100000000]";
/// In this time the first request is answered, also if neighbours are resolved before.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// The clients of one bed. Their servers run until this value is dropped.
pub struct Clients<'b> {
    bed: &'b VethBed,
    load: ClientLoad,
    http: HttpServer,
    _iperf: Option<Running>,
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'b> Clients<'b> {
    /// Starts the servers on the right host.
    pub fn start(bed: &'b VethBed, load: ClientLoad) -> Result<Clients<'b>, VethError> {
        let http = HttpServer::start(&bed.right, load.bytes)?;
        let iperf = (load.client != ClientName::Http).then(|| iperf_server(bed)).transpose()?;
        Ok(Clients { bed, load, http, _iperf: iperf })
    }

    /// Makes one request, which the right host has to answer.
    pub fn request(&self) -> Result<(), VethError> {
        let seconds = FIRST_ANSWER.as_secs().to_string();
        let url = url("");
        let program = if self.load.client == ClientName::Http { "curl" } else { "iperf3" };
        let arguments: &[&str] = match self.load.client {
            ClientName::Http => {
                &["curl", "--silent", "--show-error", "--max-time", &seconds, "--output", "/dev/null", &url]
            }
            _ => &["iperf3", "--client", RIGHT, "--connect-timeout", "10000", "--blockcount", "16"],
        };
        let done = finished(program, command(&self.bed.left, arguments).output())?;
        if done.status.success() { Ok(()) } else { Err(failed(program, &done)) }
    }

    /// Loads the bed for about `lead_in`, and then for about `length`, which counts.
    pub fn turn(&self, lead_in: Duration, length: Duration) -> Result<ClientTurn, VethError> {
        match self.load.client {
            ClientName::Http => self.http_turn(lead_in, length),
            _ => self.iperf_turn(lead_in, length),
        }
    }

    fn http_turn(&self, lead_in: Duration, length: Duration) -> Result<ClientTurn, VethError> {
        let before = self.http.answered();
        let curl = self.curl()?;
        let began = Instant::now();
        while self.http.answered() == before {
            if began.elapsed() > FIRST_ANSWER {
                drop(curl);
                let said = "does the bed carry packets?".into();
                return Err(VethError::Unanswered { seconds: FIRST_ANSWER.as_secs_f64(), said });
            }
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(lead_in);
        let (first, from) = (self.http.answered(), Instant::now());
        thread::sleep(length);
        let (counted, time) = (self.http.answered() - first, from.elapsed());
        Ok(ClientTurn { counted, offered: counted, time })
    }

    fn curl(&self) -> Result<Running, VethError> {
        let (url, parallel) = (url(REQUESTS), self.load.connections.to_string());
        let mut command = command(&self.bed.left, &["curl", "--silent", "--output", "/dev/null"]);
        if self.load.connections > 1 {
            command.args(["--parallel", "--parallel-max", &parallel]);
        }
        command.arg(url).stdout(Stdio::null()).stderr(Stdio::null());
        let child = start_tied(command);
        Ok(Running(child.map_err(|error| VethError::Start { program: "curl".into(), error })?))
    }

    fn iperf_turn(&self, lead_in: Duration, length: Duration) -> Result<ClientTurn, VethError> {
        let lead_in = SETTLE.max(lead_in);
        let seconds = (lead_in + length).as_secs_f64().ceil().to_string();
        let (connections, bytes) = (self.load.connections.to_string(), self.load.bytes.to_string());
        let mut client =
            command(&self.bed.left, &["iperf3", "--client", RIGHT, "--json", "--get-server-output"]);
        client.args(["--interval", "0.1", "--time", &seconds, "--connect-timeout", "10000"]);
        client.args(match self.load.client {
            ClientName::Udp => vec!["--udp", "--bitrate", "0", "--length", &bytes],
            ClientName::TcpBack => vec!["--reverse", "--parallel", &connections],
            _ => vec!["--parallel", &connections],
        });
        let done = finished("iperf3", client.output())?;
        Report::read(&done.stdout)?.turn(self.load.client, lead_in)
    }
}

fn url(path: &str) -> String {
    format!("http://{RIGHT}/{path}")
}

/// Starts the server and waits until it listens.
fn iperf_server(bed: &VethBed) -> Result<Running, VethError> {
    let mut server = command(&bed.right, &["iperf3", "--server", "--json", "--interval", "0.1"]);
    server.stdout(Stdio::null()).stderr(Stdio::null());
    let child = start_tied(server);
    let running = Running(child.map_err(|error| VethError::Start { program: "iperf3".into(), error })?);
    let began = Instant::now();
    while !listens(&bed.right)? {
        if began.elapsed() > START {
            return Err(VethError::Failed { program: "iperf3", said: "the server does not listen".into() });
        }
        thread::sleep(POLL);
    }
    Ok(running)
}

/// Whether a TCP socket of the namespace listens at iperf3's port, 5201.
fn listens(host: &Namespace) -> Result<bool, VethError> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/tcp6").unwrap_or_default();
    let sockets = host.within(|| Ok(read()))?;
    Ok(sockets.lines().any(|line| line.contains(":1451 ") && line.contains(" 0A ")))
}

fn command(host: &Namespace, words: &[&str]) -> Command {
    let mut command = tied("ip");
    command.args(["netns", "exec", host.name()]).args(words).stdin(Stdio::null());
    command
}

fn finished(program: &'static str, output: std::io::Result<Output>) -> Result<Output, VethError> {
    output.map_err(|error| VethError::Start { program: program.into(), error })
}

fn failed(program: &'static str, done: &Output) -> VethError {
    VethError::Failed { program, said: String::from_utf8_lossy(&done.stderr).trim().to_owned() }
}
