//! What goes to a collector of sFlow.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Instant;

use fullview_plane::sample::PacketSample;

use super::collector::Collector;
use super::fate::output;
use super::port::SampledPorts;
use crate::control::status::InterfaceStatus;
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
    CounterSample {
        sequence,
        interface,
        status: LinkStatus {
            is_admin_up: of_port.iter().any(|of| of.admin_up),
            is_oper_up: of_port.iter().any(|of| of.up),
        },
        received_bytes: sum(|of| of.received.bytes),
        received_packets: sum(|of| of.received.packets) as u32,
        discarded: sum(|of| of.drops.values().sum::<u64>() + of.overruns) as u32,
        sent_bytes: sum(|of| of.sent.bytes),
        sent_packets: sum(|of| of.sent.packets) as u32,
    }
}
