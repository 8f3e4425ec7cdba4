//! Counts the packets of a measurement by a line of the inventory that runs pkt-gen, on a node where this program does not run.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::inventory::{InterfaceSettings, NodeSettings};
use super::pkt_gen::{PktGenLine, PktGenReport};
use super::ssh::SshHost;
use super::timed_command::{CommandOutput, TimedCommand, failure_of};
use super::traffic_line::fill;

/// It ends with the connection.
const WITHOUT_LIMIT: u64 = 365 * 24 * 3600;
/// pkt-gen waits for its link before the first report.
const FIRST_REPORT: Duration = Duration::from_secs(120);
const REPORT: Duration = Duration::from_secs(30);
/// So many of them in which packets come, and nothing sends any more.
const MOST_REPORTS: u32 = 20;
/// A receiver that has ended by itself before does so again within this time of silence.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
const KEPT_LINES: usize = 3;

/// A receiver that runs.
pub struct CommandReceiver {
    line: String,
    settle: Duration,
    state: RefCell<ReceiverState>,
}

struct ReceiverState {
    run: ReceiverRun,
    /// Whether one before it ended by itself, as older versions do when nothing comes any more.
    ends: bool,
    packets: u64,
}

struct ReceiverRun {
    command: TimedCommand,
    has_reported: bool,
    has_counted: bool,
    last: Vec<String>,
}

impl CommandReceiver {
    /// Starts the line of a node, if it has one, and waits until it counts.
    pub fn start(
        host: &SshHost,
        node: &NodeSettings,
        interface: &InterfaceSettings,
    ) -> Result<Option<CommandReceiver>, RemoteError> {
        let Some(line) = &node.receive else { return Ok(None) };
        let line = fill(line, &[("interface", interface.name.clone())]);
        let state = ReceiverState { run: ReceiverRun::start(host, &line)?, ends: false, packets: 0 };
        let settle = Duration::from_millis(node.settle_ms);
        let receiver = CommandReceiver { line, settle, state: RefCell::new(state) };
        receiver.report(host, FIRST_REPORT)?;
        Ok(Some(receiver))
    }

    /// Packets that it has reported; then it counts on.
    pub fn packets(&self, host: &SshHost) -> Result<u64, RemoteError> {
        loop {
            match self.report(host, Duration::ZERO) {
                Err(RemoteError::Silent { .. }) if self.counts() => return Ok(self.state.borrow().packets),
                Err(RemoteError::Silent { .. }) => _ = self.report(host, FIRST_REPORT)?,
                reported => _ = reported?,
            }
        }
    }

    /// The same when no more come. The first report from now on may be of the time before.
    pub fn settled(&self, host: &SshHost) -> Result<u64, RemoteError> {
        self.packets(host)?;
        self.report(host, REPORT)?;
        let (mut quiet, mut busy) = (Duration::ZERO, 0);
        while quiet < self.settle || self.will_end() && quiet < self.settle + ENDS_WITHIN {
            let PktGenReport { packets, microseconds } = self.report(host, REPORT)?;
            quiet = if packets == 0 { quiet + Duration::from_micros(microseconds) } else { Duration::ZERO };
            busy += u32::from(packets > 0);
            if busy > MOST_REPORTS {
                let failure = format!(
                    "still reports packets after {MOST_REPORTS} reports: something else sends on this wire"
                );
                return Err(self.failed(host, failure));
            }
        }
        Ok(self.state.borrow().packets)
    }

    fn counts(&self) -> bool {
        self.state.borrow().run.has_reported
    }

    /// Whether it is about to end: packets that came then would be lost.
    fn will_end(&self) -> bool {
        let state = self.state.borrow();
        state.ends && state.run.has_counted
    }

    /// Adds the next report. A receiver that has ended by itself is started again.
    fn report(&self, host: &SshHost, within: Duration) -> Result<PktGenReport, RemoteError> {
        let mut state = self.state.borrow_mut();
        loop {
            match state.run.next(within)? {
                ReceiverOutput::Report(report) => {
                    state.packets += report.packets;
                    return Ok(report);
                }
                ReceiverOutput::Ended(0) if state.run.has_reported => {
                    state.run = ReceiverRun::start(host, &self.line)?;
                    state.ends = true;
                }
                ReceiverOutput::Ended(status) => {
                    return Err(self.failed(host, failure_of(status, &state.run.last)));
                }
                ReceiverOutput::Rounded => {
                    let failure = "prints numbers with units: pkt-gen needs -N".to_owned();
                    return Err(self.failed(host, failure));
                }
            }
        }
    }

    fn failed(&self, host: &SshHost, failure: String) -> RemoteError {
        RemoteError::TrafficCommand { node: host.node.clone(), command: self.line.clone(), failure }
    }
}

enum ReceiverOutput {
    Report(PktGenReport),
    Rounded,
    Ended(i32),
}

impl ReceiverRun {
    fn start(host: &SshHost, line: &str) -> Result<ReceiverRun, RemoteError> {
        let command = TimedCommand::start(host, line, WITHOUT_LIMIT)?;
        Ok(ReceiverRun { command, has_reported: false, has_counted: false, last: Vec::new() })
    }

    fn next(&mut self, within: Duration) -> Result<ReceiverOutput, RemoteError> {
        let began = Instant::now();
        loop {
            let line = match self.command.read(within.saturating_sub(began.elapsed()))? {
                CommandOutput::Ended(status) => return Ok(ReceiverOutput::Ended(status)),
                CommandOutput::Line(line) => line,
            };
            match PktGenLine::of(&line) {
                PktGenLine::Report(report) => {
                    self.has_reported = true;
                    self.has_counted |= report.packets > 0;
                    return Ok(ReceiverOutput::Report(report));
                }
                PktGenLine::Rounded => return Ok(ReceiverOutput::Rounded),
                PktGenLine::Ready(_) | PktGenLine::Other => self.keep(line),
            }
        }
    }

    /// Keeps the last lines, which say why it failed.
    fn keep(&mut self, line: String) {
        if !line.trim().is_empty() {
            self.last.push(line);
            self.last.drain(..self.last.len().saturating_sub(KEPT_LINES));
        }
    }
}
