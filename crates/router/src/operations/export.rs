//! `[export]`: sends samples of packets and the counters of interfaces to a collector, from a thread of its own.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fullview_plane::program_verdict::{ProgramVerdict, XdpReason};
use fullview_plane::sample::{Decision, PacketSample};
use fullview_plane::verdict::{Punt, Reason, Verdict};
use rustix::net::netdevice::name_to_index;

use super::error::OperationsError;
use super::inspect;
use crate::control::status::InterfaceStatus;
use crate::daemon::{QueryHandle, WatchHub};
use crate::log;
use crate::options::ExportOptions;
use crate::telemetry::sflow::{self, CounterSample, DatagramHead, FlowSample, SampledOutput};

/// How often samples are fetched from the workers.
const TICK: Duration = Duration::from_millis(20);

/// A running export. It ends when this is dropped, after it has sent all samples.
pub struct FlowExport {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FlowExport {
    /// `ports` are the names of the interfaces, by port.
    pub fn start(
        options: ExportOptions,
        ports: &[String],
        queries: &QueryHandle,
        hub: &Arc<WatchHub>,
    ) -> Result<FlowExport, OperationsError> {
        log::line(&format!("export: sFlow to {}, one packet in {}", options.sflow, options.sample));
        let (end, ended) = sync_channel(0);
        let (queries, hub, interval) = (queries.clone(), Arc::clone(hub), options.counters);
        let mut exporter = SflowExporter::new(options, ports);
        let thread = Builder::new().name("export".into()).spawn(move || {
            let (mut goes_on, mut next_counters) = (true, Instant::now());
            while goes_on {
                goes_on = ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout);
                exporter.add_samples(&hub.take_samples());
                if goes_on && Instant::now() >= next_counters {
                    next_counters = Instant::now() + interval;
                    exporter.add_counters(&queries);
                }
                exporter.flush();
            }
        });
        let thread = thread.map_err(OperationsError::Thread)?;
        Ok(FlowExport { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for FlowExport {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A port as the source of samples.
struct SampledPort {
    name: String,
    /// The kernel's number of the interface, once it is known.
    index: Option<u32>,
    flow_sequence: u32,
    counter_sequence: u32,
    pool: u64,
    drops: u64,
}

impl SampledPort {
    fn new(name: &str) -> SampledPort {
        let (index, name) = (None, name.to_owned());
        SampledPort { name, index, flow_sequence: 0, counter_sequence: 0, pool: 0, drops: 0 }
    }
}

struct SflowExporter {
    options: ExportOptions,
    ports: Vec<SampledPort>,
    collector: Collector,
    /// Encoded samples of the next datagram.
    waiting: Vec<Vec<u8>>,
}

impl SflowExporter {
    fn new(options: ExportOptions, ports: &[String]) -> SflowExporter {
        let ports = ports.iter().map(|name| SampledPort::new(name)).collect();
        let collector = Collector::new(&options);
        let mut exporter = SflowExporter { options, ports, collector, waiting: Vec::new() };
        exporter.find_indices();
        exporter
    }

    /// An interface that is made again has another number.
    fn find_indices(&mut self) {
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else { return };
        self.ports.iter_mut().for_each(|port| port.index = name_to_index(&socket, &port.name).ok());
    }

    fn add_samples(&mut self, samples: &[PacketSample]) {
        samples.iter().for_each(|sample| self.add_sample(sample));
    }

    /// Leaves out a sample of an interface without a number, which is gone.
    fn add_sample(&mut self, sample: &PacketSample) {
        let output = self.output(sample);
        let Some(port) = self.ports.get_mut(usize::from(sample.port)) else { return };
        port.pool += sample.passed;
        port.drops += sample.lost;
        let Some(interface) = port.index else { return };
        port.flow_sequence = port.flow_sequence.wrapping_add(1);
        let encoded = sflow::flow_sample(&FlowSample {
            sequence: port.flow_sequence,
            interface,
            rate: self.options.sample.get(),
            pool: port.pool as u32,
            drops: port.drops as u32,
            output,
            frame_len: sample.frame_len,
            header: sample.header(),
        });
        self.push(encoded);
    }

    fn output(&self, sample: &PacketSample) -> SampledOutput {
        let index = |port: u16| self.ports.get(usize::from(port)).and_then(|port| port.index);
        match sample.decision {
            Decision::Loop(Verdict::Forward) | Decision::Program(ProgramVerdict::Forward) => {
                sample.egress.and_then(index).map_or(SampledOutput::Unknown, SampledOutput::Interface)
            }
            Decision::Loop(verdict) => output_of_loop(verdict),
            Decision::Program(ProgramVerdict::Refuse(reason)) => output_of_program(reason),
        }
    }

    fn add_counters(&mut self, queries: &QueryHandle) {
        self.find_indices();
        // A router that is busy or ends does not answer: the counters go with the next ones.
        let Ok(Ok(interfaces)) = queries.ask(|state| inspect::interfaces(state)) else { return };
        for (number, port) in (0..).zip(&mut self.ports) {
            let of_port: Vec<_> = interfaces.iter().filter(|interface| interface.port == number).collect();
            if let Some(interface) = port.index {
                port.counter_sequence = port.counter_sequence.wrapping_add(1);
                let sample = counters_of(port.counter_sequence, interface, &of_port);
                self.waiting.push(sflow::counter_sample(&sample));
            }
        }
    }

    fn push(&mut self, encoded: Vec<u8>) {
        self.waiting.push(encoded);
        if self.waiting.len() >= sflow::MOST_SAMPLES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for samples in self.waiting.chunks(sflow::MOST_SAMPLES) {
            self.collector.send(samples);
        }
        self.waiting.clear();
    }
}

/// The counters of a port: those of its own interface and of its VLANs.
fn counters_of(sequence: u32, interface: u32, of_port: &[&InterfaceStatus]) -> CounterSample {
    let sum = |count: fn(&InterfaceStatus) -> u64| of_port.iter().map(|of| count(of)).sum::<u64>();
    CounterSample {
        sequence,
        interface,
        is_up: of_port.iter().any(|of| of.up),
        received_bytes: sum(|of| of.received.bytes),
        received_packets: sum(|of| of.received.packets) as u32,
        discarded: sum(|of| of.drops.values().sum::<u64>() + of.overruns) as u32,
        sent_bytes: sum(|of| of.sent.bytes),
        sent_packets: sum(|of| of.sent.packets) as u32,
    }
}

fn output_of_loop(verdict: Verdict) -> SampledOutput {
    match verdict {
        Verdict::Drop(reason) => SampledOutput::Discarded(discard_code(reason)),
        Verdict::Reject(_) => SampledOutput::Discarded(discard_code(Reason::FilterRule)),
        Verdict::Punt(Punt::Local) => SampledOutput::Device,
        Verdict::Punt(_) | Verdict::Forward => SampledOutput::Unknown,
    }
}

fn output_of_program(reason: XdpReason) -> SampledOutput {
    match reason {
        XdpReason::NoRoute => SampledOutput::Discarded(discard_code(Reason::NoRoute)),
        XdpReason::TtlExpired => SampledOutput::Discarded(discard_code(Reason::TtlExpired)),
        XdpReason::Local => SampledOutput::Device,
        reason if reason.discards() => SampledOutput::Discarded(UNKNOWN_DISCARD),
        _ => SampledOutput::Unknown,
    }
}

/// sFlow's reason for packets that are discarded for another one.
const UNKNOWN_DISCARD: u32 = 256;

/// Why a packet is discarded, as sFlow numbers reasons: codes of Destination Unreachable below 256, its own from there on.
fn discard_code(reason: Reason) -> u32 {
    match reason {
        Reason::NoRoute => 0,
        Reason::Unreachable | Reason::NoAdjacency => 1,
        Reason::Prohibited => 13,
        Reason::TtlExpired | Reason::HopLimitExpired => 257,
        Reason::TooBig => 262,
        reason if reason.is_of_filter() => 258,
        _ => UNKNOWN_DISCARD,
    }
}

/// Sends datagrams, and never waits.
struct Collector {
    address: SocketAddr,
    /// The address that datagrams name as their sender's, if it is not that of the socket.
    agent: Option<IpAddr>,
    socket: Option<UdpSocket>,
    began: Instant,
    sequence: u32,
    /// Whether the log says that there is no way to the collector.
    is_reported: bool,
}

impl Collector {
    fn new(options: &ExportOptions) -> Collector {
        let (address, agent) = (options.sflow, options.agent);
        Collector { address, agent, socket: None, began: Instant::now(), sequence: 0, is_reported: false }
    }

    fn send(&mut self, samples: &[Vec<u8>]) {
        match self.try_send(samples) {
            Ok(()) => self.is_reported = false,
            // The socket's buffer is full, or an earlier datagram found no collector. The sequence number shows what is lost.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
            Err(error) => self.report(&error),
        }
    }

    fn try_send(&mut self, samples: &[Vec<u8>]) -> std::io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => connect(self.address)?,
        };
        let agent = self.agent.map_or_else(|| socket.local_addr().map(|address| address.ip()), Ok)?;
        let socket = self.socket.insert(socket);
        self.sequence = self.sequence.wrapping_add(1);
        let uptime = self.began.elapsed().as_millis() as u32;
        let head = DatagramHead { agent, sequence: self.sequence, uptime };
        socket.send(&sflow::datagram(&head, samples)).map(drop)
    }

    /// The next datagram gets a new socket, whose own address follows from the routes of then.
    fn report(&mut self, error: &std::io::Error) {
        self.socket = None;
        if !std::mem::replace(&mut self.is_reported, true) {
            log::warning(&format!("export: {}: {error}; samples are lost", self.address));
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_numbers_of_sflow() {
        let codes =
            [Reason::NoRoute, Reason::TtlExpired, Reason::FilterState, Reason::Checksum].map(discard_code);
        assert_eq!(codes, [0, 257, 258, 256]);
    }
}
