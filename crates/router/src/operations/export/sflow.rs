//! What goes to a collector of sFlow.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Instant;

use fullview_plane::program_verdict::XdpReason;
use fullview_plane::sample::PacketSample;
use fullview_plane::verdict::Reason;

use super::collector::Collector;
use super::fate::output;
use super::port::SampledPorts;
use crate::control::status::InterfaceStatus;
use crate::daemon::EngineInUse;
use crate::options::ExportOptions;
use crate::telemetry::sflow::{self, CounterSample, DatagramHead, FlowSample, LinkStatus};

pub struct SflowExporter {
    rate: NonZeroU32,
    /// The address that datagrams name as their sender's, if it is not that of the socket.
    agent: Option<IpAddr>,
    collector: Collector,
    began: Instant,
    sequence: u32,
    /// By port.
    sequences: Vec<PortSequences>,
    /// Encoded samples of the next datagram.
    waiting: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Default)]
struct PortSequences {
    flows: u32,
    counters: u32,
}

impl SflowExporter {
    pub fn new(address: SocketAddr, options: &ExportOptions, ports: usize) -> SflowExporter {
        SflowExporter {
            rate: options.sample,
            agent: options.agent,
            collector: Collector::new(address),
            began: Instant::now(),
            sequence: 0,
            sequences: vec![PortSequences::default(); ports],
            waiting: Vec::new(),
        }
    }

    /// Leaves out a sample of an interface without a number, which is gone; its port counts it.
    pub fn add_sample(&mut self, ports: &SampledPorts, sample: &PacketSample) {
        let place = usize::from(sample.port);
        let (Some(port), Some(sequences)) = (ports.port(sample.port), self.sequences.get_mut(place)) else {
            return;
        };
        let Some(interface) = port.index else { return };
        sequences.flows = sequences.flows.wrapping_add(1);
        let encoded = sflow::flow_sample(&FlowSample {
            sequence: sequences.flows,
            interface,
            rate: self.rate.get(),
            pool: port.pool as u32,
            drops: port.drops as u32,
            output: output(ports, sample),
            frame_len: sample.frame_len,
            header: sample.header(),
        });
        self.push(encoded);
    }

    pub fn add_counters(&mut self, ports: &SampledPorts, interfaces: &[InterfaceStatus]) {
        for ((number, port), sequences) in (0..).zip(ports.all()).zip(&mut self.sequences) {
            let of_port: Vec<_> = interfaces.iter().filter(|interface| interface.port == number).collect();
            if let Some(interface) = port.index {
                sequences.counters = sequences.counters.wrapping_add(1);
                let sample = counters_of(sequences.counters, interface, &of_port);
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

    pub fn flush(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.chunks(sflow::MOST_SAMPLES).for_each(|samples| self.send(samples));
    }

    fn send(&mut self, samples: &[Vec<u8>]) {
        let SflowExporter { collector, sequence, agent, began, .. } = self;
        collector.send(|own| {
            *sequence = sequence.wrapping_add(1);
            let (agent, uptime) = (agent.unwrap_or(own), began.elapsed().as_millis() as u32);
            sflow::datagram(&DatagramHead { agent, sequence: *sequence, uptime }, samples)
        });
    }
}

/// The counters of a port: those of its own interface and of its VLANs.
fn counters_of(sequence: u32, interface: u32, of_port: &[&InterfaceStatus]) -> CounterSample {
    let sum = |count: fn(&InterfaceStatus) -> u64| of_port.iter().map(|of| count(of)).sum::<u64>();
    let is_by_program = of_port.iter().any(|of| is_by_program(of));
    CounterSample {
        sequence,
        interface,
        status: LinkStatus {
            is_admin_up: of_port.iter().any(|of| of.admin_up),
            is_oper_up: of_port.iter().any(|of| of.up),
        },
        received_bytes: sum(|of| of.received.bytes),
        received_packets: sum(|of| of.received.packets) as u32,
        input_discards: sum(|of| dropped(of, false) + dropped_by_program(of) + of.overruns) as u32,
        sent_bytes: sum(|of| of.sent.bytes),
        sent_packets: sum(|of| of.sent.packets) as u32,
        // A program in the kernel does not learn what becomes of the packets that it sends.
        output_discards: (!is_by_program).then(|| sum(|of| dropped(of, true)) as u32),
    }
}

/// Whether a program in the kernel forwards what comes in by the interface, or has done so. Before it first runs there are no counts
/// of it, and an interface without an engine has those of programs before.
fn is_by_program(of: &InterfaceStatus) -> bool {
    EngineInUse::is_program(&of.engine.name) || !of.program.is_empty()
}

/// What workers dropped: packets that were to leave by the interface, or those that came in by it.
fn dropped(of: &InterfaceStatus, on_output: bool) -> u64 {
    let reasons = Reason::ALL.iter().filter(|reason| reason.is_of_output() == on_output);
    reasons.filter_map(|reason| of.drops.get(reason.name())).sum()
}

/// What a program in the kernel dropped of the packets that came in by the interface.
fn dropped_by_program(of: &InterfaceStatus) -> u64 {
    let reasons = XdpReason::ALL.iter().filter(|reason| reason.drops());
    reasons.filter_map(|reason| of.program.get(reason.name())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::EngineStatus;

    fn interface(drops: &[(Reason, u64)], program: &[(XdpReason, u64)]) -> InterfaceStatus {
        let drops: serde_json::Map<_, _> =
            drops.iter().map(|(reason, count)| (reason.name().to_owned(), (*count).into())).collect();
        let program: serde_json::Map<_, _> =
            program.iter().map(|(reason, count)| (reason.name().to_owned(), (*count).into())).collect();
        let none = serde_json::json!({ "packets": 0, "bytes": 0 });
        let text = serde_json::json!({
            "number": 0, "name": "eth1", "port": 0, "vlan": null, "mac": "02:00:00:00:00:01", "mtu": 1500, "up": true,
            "table": 254, "forwards": [], "source-check": "off", "redirects": false, "addresses": [],
            "received": none, "sent": none, "overruns": 1000, "drops": drops, "program": program,
            "engine": { "name": "threads", "why": "" },
        });
        serde_json::from_value(text).unwrap()
    }

    fn discards(interface: &InterfaceStatus) -> (u32, Option<u32>) {
        let sample = counters_of(1, 2, &[interface]);
        (sample.input_discards, sample.output_discards)
    }

    #[test]
    fn what_is_dropped_on_the_way_out_is_no_received_packet() {
        let output = [Reason::EgressFull, Reason::Unsendable, Reason::DroppedByKernel, Reason::InterfaceDown];
        let drops = [(Reason::NoRoute, 1), (Reason::FilterRule, 2)];
        let all: Vec<_> = output.map(|reason| (reason, 10)).into_iter().chain(drops).collect();
        assert_eq!(discards(&interface(&all, &[])), (1003, Some(40)));
    }

    #[test]
    fn a_program_drops_received_packets_and_knows_of_no_others() {
        let program = [
            (XdpReason::Blackhole, 1),
            (XdpReason::NoRouteLimited, 2),
            (XdpReason::NoRoute, 4),
            (XdpReason::Local, 8),
        ];
        assert_eq!(discards(&interface(&[], &program)), (1003, None));
    }

    #[test]
    fn what_a_program_drops_on_the_way_out_is_unknown_before_it_first_runs() {
        let by = |engine: &str| {
            let engine = EngineStatus { name: engine.into(), why: String::new() };
            discards(&InterfaceStatus { engine, ..interface(&[], &[]) }).1
        };
        let unknown = ["tc", "xdp", "xdp-generic"].map(by);
        assert_eq!((unknown, ["threads", "none"].map(by)), ([None; 3], [Some(0); 2]));
    }
}
