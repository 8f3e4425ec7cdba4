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
    /// Whether the collector may lack the templates.
    templates_are_due: bool,
    waiting: Message,
}

impl IpfixExporter {
    pub fn new(address: SocketAddr, rate: NonZeroU32) -> IpfixExporter {
        let (collector, waiting) = (Collector::new(address), Message::default());
        IpfixExporter { rate, collector, sequence: 0, templates_are_due: true, waiting }
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

    /// Adds the counts of samples, before which the templates are sent. UDP may lose these, and a collector may begin later
    /// than the router, so they are sent again and again.
    pub fn add_counts(&mut self, ports: &SampledPorts) {
        self.templates_are_due = true;
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

    /// Sends what waits, behind the templates where a collector may lack them. Each socket has templates of its own (RFC 7011,
    /// section 8), and a message that could not be sent may have been for a collector that begins again.
    pub fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let message = std::mem::take(&mut self.waiting);
        if self.templates_are_due || self.collector.has_no_socket() {
            let templates = self.templates();
            self.templates_are_due = !self.send(templates);
        }
        // No collector could read it without the templates.
        if self.templates_are_due {
            self.count(&message);
        } else {
            self.templates_are_due = !self.send(message);
        }
    }

    /// The templates of all records, and how packets are sampled.
    fn templates(&self) -> Message {
        let mut message = Message::default();
        let selector = ipfix::selector(self.rate.get());
        // An empty message has room for all of them.
        ipfix::templates().into_iter().chain([selector]).for_each(|record| _ = message.push(record));
        message
    }

    /// Counts the records of a message, and returns how many there were before.
    fn count(&mut self, message: &Message) -> u32 {
        let before = self.sequence;
        self.sequence = before.wrapping_add(message.data_records());
        before
    }

    /// Returns whether the message was sent.
    fn send(&mut self, message: Message) -> bool {
        let sequence = self.count(&message);
        self.collector.send(|_| message.finish(since_1970().as_secs() as u32, sequence))
    }
}

fn since_1970() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    /// The number of the first set in the next message.
    fn first_set(collector: &UdpSocket) -> u16 {
        let mut message = [0; 1500];
        collector.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        collector.recv(&mut message).unwrap();
        u16::from_be_bytes([message[16], message[17]])
    }

    fn export(exporter: &mut IpfixExporter) {
        let totals = InterfaceTotals { interface: 1, observed: 10, selected: 1, not_sent: 0 };
        exporter.push(ipfix::interface_totals(&totals));
        exporter.flush();
    }

    #[test]
    fn templates_come_first_by_a_new_socket_and_after_a_message_that_was_not_sent() {
        const TEMPLATES: u16 = 2;
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = collector.local_addr().unwrap();
        let mut exporter = IpfixExporter::new(address, NonZeroU32::MIN);
        exporter.templates_are_due = false;
        export(&mut exporter);
        let data = first_set_after_templates(&collector);
        export(&mut exporter);
        assert_eq!(first_set(&collector), data, "templates are not sent each time");
        drop(collector);
        // The first is sent and finds no collector, the second is not sent.
        (0..2).for_each(|_| export(&mut exporter));
        let collector = UdpSocket::bind(address).unwrap();
        export(&mut exporter);
        assert_eq!(first_set_after_templates(&collector), data);
        drop(collector);
        export(&mut exporter);
        let collector = UdpSocket::bind(address).unwrap();
        exporter.templates_are_due = true;
        // The templates are not sent, and nothing without them.
        (0..2).for_each(|_| export(&mut exporter));
        assert_eq!(first_set_after_templates(&collector), data);

        fn first_set_after_templates(collector: &UdpSocket) -> u16 {
            assert_eq!(first_set(collector), TEMPLATES);
            first_set(collector)
        }
    }
}
