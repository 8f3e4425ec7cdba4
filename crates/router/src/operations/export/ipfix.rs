//! What goes to a collector of IPFIX.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::{SystemTime, UNIX_EPOCH};

use fullview_plane::sample::PacketSample;

use super::collector::Collector;
use super::fate::{egress, status};
use super::port::SampledPorts;
use crate::telemetry::ipfix::{self, InterfaceTotals, Message, PacketReport, Record};

pub struct IpfixExporter {
    rate: NonZeroU32,
    collector: Collector,
    /// Data records in earlier messages.
    sequence: u32,
    waiting: Message,
}

impl IpfixExporter {
    pub fn new(address: SocketAddr, rate: NonZeroU32) -> IpfixExporter {
        IpfixExporter { rate, collector: Collector::new(address), sequence: 0, waiting: Message::default() }
    }

    /// Leaves out a sample of an interface without a number, which is gone; its port counts it.
    pub fn add_sample(&mut self, ports: &SampledPorts, sample: &PacketSample) {
        let Some(ingress) = ports.index(sample.port) else { return };
        self.push(ipfix::packet(&PacketReport {
            at: since_1970().as_millis() as u64,
            ingress,
            egress: egress(ports, sample).unwrap_or(0),
            status: status(sample.decision),
            frame_len: sample.frame_len,
            header: sample.header(),
        }));
    }

    /// Adds the templates, how packets are sampled, and the counts of samples. UDP may lose them, and a collector may begin
    /// later than the router, so they are sent again and again.
    pub fn add_counts(&mut self, ports: &SampledPorts) {
        ipfix::templates().into_iter().for_each(|template| self.push(template));
        self.push(ipfix::selector(self.rate.get()));
        for port in ports.all() {
            if let Some(interface) = port.index {
                let (observed, not_sent) = (port.pool, port.drops);
                let selected = port.samples + not_sent;
                let totals = InterfaceTotals { interface, observed, selected, not_sent };
                self.push(ipfix::interface_totals(&totals));
            }
        }
    }

    fn push(&mut self, record: Record) {
        if let Err(record) = self.waiting.push(record) {
            self.flush();
            // An empty message has room for each record.
            let _ = self.waiting.push(record);
        }
    }

    pub fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let message = std::mem::take(&mut self.waiting);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(message.data_records());
        self.collector.send(|_| message.finish(since_1970().as_secs() as u32, sequence));
    }
}

fn since_1970() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
