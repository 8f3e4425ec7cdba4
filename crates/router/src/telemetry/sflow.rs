//! Datagrams of sFlow version 5 (sflow.org, "sFlow Version 5", July 2004): numbers are those of its section 5.
//!
//! Linux numbers interfaces with 31 bits, so the expanded forms are used throughout, as the specification asks.

use std::net::IpAddr;

/// Samples of a datagram at most, so that it fits into a frame of 1,500 bytes: a flow sample has up to 204 bytes.
pub const MOST_SAMPLES: usize = 6;

/// The value of a counter that is not known.
const UNKNOWN: u32 = u32::MAX;
/// The interface of packets that end in the device.
const THIS_DEVICE: u32 = 0x3fff_ffff;
/// Formats of standard samples and records.
const EXPANDED_FLOW_SAMPLE: u32 = 3;
const EXPANDED_COUNTERS_SAMPLE: u32 = 4;
const RAW_PACKET_HEADER: u32 = 1;
const GENERIC_COUNTERS: u32 = 1;
/// Values of fields.
const SOURCE_IS_INTERFACE: u32 = 0;
const ETHERNET_HEADER: u32 = 1;
const ETHERNET_INTERFACE: u32 = 6;
const FCS: u32 = 4;

/// What became of a sampled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledOutput {
    /// It leaves by the interface of this number.
    Interface(u32),
    /// It is discarded, for this reason.
    Discarded(u32),
    /// It is for this device.
    Device,
    /// The device does not know.
    Unknown,
}

impl SampledOutput {
    fn words(self) -> [u32; 2] {
        match self {
            SampledOutput::Interface(index) => [0, index],
            SampledOutput::Discarded(reason) => [1, reason],
            SampledOutput::Device => [0, THIS_DEVICE],
            SampledOutput::Unknown => [0, 0],
        }
    }
}

/// A sampled packet, and the counts of its interface up to it.
pub struct FlowSample<'h> {
    pub sequence: u32,
    /// The interface that received it.
    pub interface: u32,
    /// One packet in so many is sampled.
    pub rate: u32,
    /// Packets that could have been sampled.
    pub pool: u32,
    /// Samples that were lost.
    pub drops: u32,
    pub output: SampledOutput,
    /// The length of the frame without the FCS.
    pub frame_len: u32,
    pub header: &'h [u8],
}

/// The state of an interface, by the terms of RFC 2863.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Whether it is set up.
    pub is_admin_up: bool,
    /// Whether it also has a carrier.
    pub is_oper_up: bool,
}

impl LinkStatus {
    fn word(self) -> u32 {
        u32::from(self.is_admin_up) | u32::from(self.is_oper_up) << 1
    }
}

/// The counters of an interface.
pub struct CounterSample {
    pub sequence: u32,
    pub interface: u32,
    pub status: LinkStatus,
    pub received_bytes: u64,
    pub received_packets: u32,
    /// Received packets that were dropped.
    pub input_discards: u32,
    pub sent_bytes: u64,
    pub sent_packets: u32,
    /// Packets that were dropped on their way out; `None` if the router does not know.
    pub output_discards: Option<u32>,
}

/// The sender of a datagram.
pub struct DatagramHead {
    pub agent: IpAddr,
    pub sequence: u32,
    /// Milliseconds since the agent began.
    pub uptime: u32,
}

/// Encodes a flow sample with its raw packet header.
pub fn flow_sample(sample: &FlowSample<'_>) -> Vec<u8> {
    let [format, output] = sample.output.words();
    let source = [SOURCE_IS_INTERFACE, sample.interface];
    let input = [0, sample.interface];
    let mut body = Xdr::default();
    body.words([sample.sequence]).words(source).words([sample.rate, sample.pool, sample.drops]);
    body.words(input).words([format, output]).words([1]);
    body.tagged(RAW_PACKET_HEADER, &raw_header(sample));
    Xdr::default().tagged(EXPANDED_FLOW_SAMPLE, &body.0).take()
}

/// The length counts the FCS, which never reached the router, as removed.
fn raw_header(sample: &FlowSample<'_>) -> Vec<u8> {
    let mut record = Xdr::default();
    record.words([ETHERNET_HEADER, sample.frame_len + FCS, FCS]).opaque(sample.header).take()
}

/// Encodes the counters of an interface.
pub fn counter_sample(sample: &CounterSample) -> Vec<u8> {
    let mut body = Xdr::default();
    body.words([sample.sequence, SOURCE_IS_INTERFACE, sample.interface, 1]);
    body.tagged(GENERIC_COUNTERS, &generic_counters(sample));
    Xdr::default().tagged(EXPANDED_COUNTERS_SAMPLE, &body.0).take()
}

/// The counts of packets are those of all packets: multicasts and broadcasts are not told apart, and said to be unknown.
fn generic_counters(sample: &CounterSample) -> Vec<u8> {
    let (speed, direction, status) = (0, 0, sample.status.word());
    let mut record = Xdr::default();
    record.words([sample.interface, ETHERNET_INTERFACE]).long(speed).words([direction, status]);
    record.long(sample.received_bytes).words([sample.received_packets, UNKNOWN, UNKNOWN]);
    record.words([sample.input_discards, UNKNOWN, UNKNOWN]);
    record.long(sample.sent_bytes).words([sample.sent_packets, UNKNOWN, UNKNOWN]);
    record.words([sample.output_discards.unwrap_or(UNKNOWN), UNKNOWN, UNKNOWN]).take()
}

/// Encodes a datagram of these samples.
pub fn datagram(head: &DatagramHead, samples: &[Vec<u8>]) -> Vec<u8> {
    let (version, sub_agent) = (5, 0);
    let mut datagram = Xdr::default();
    datagram.words([version]).address(head.agent);
    datagram.words([sub_agent, head.sequence, head.uptime, samples.len() as u32]);
    samples.iter().for_each(|sample| datagram.0.extend_from_slice(sample));
    datagram.take()
}

/// Data in the External Data Representation (RFC 4506).
#[derive(Default)]
struct Xdr(Vec<u8>);

impl Xdr {
    fn words<const N: usize>(&mut self, words: [u32; N]) -> &mut Xdr {
        words.iter().for_each(|word| self.0.extend_from_slice(&word.to_be_bytes()));
        self
    }

    fn long(&mut self, value: u64) -> &mut Xdr {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    fn opaque(&mut self, bytes: &[u8]) -> &mut Xdr {
        self.words([bytes.len() as u32]).0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn tagged(&mut self, format: u32, bytes: &[u8]) -> &mut Xdr {
        self.words([format]).opaque(bytes)
    }

    fn address(&mut self, address: IpAddr) -> &mut Xdr {
        match address {
            IpAddr::V4(ip) => self.words([1]).0.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => self.words([2]).0.extend_from_slice(&ip.octets()),
        }
        self
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<u32> {
        assert_eq!(bytes.len() % 4, 0);
        bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn a_flow_sample_is_as_the_specification_draws_it() {
        let sample = FlowSample {
            sequence: 7,
            interface: 0x0100_0002,
            rate: 1000,
            pool: 5000,
            drops: 1,
            output: SampledOutput::Discarded(257),
            frame_len: 60,
            header: &[0xaa; 5],
        };
        let encoded = words(&flow_sample(&sample));
        let record = [1, 24, 1, 64, 4, 5, 0xaaaa_aaaa, 0xaa00_0000];
        let body = [7, 0, 0x0100_0002, 1000, 5000, 1, 0, 0x0100_0002, 1, 257, 1];
        assert_eq!(encoded[..2], [3, (body.len() + record.len()) as u32 * 4]);
        assert_eq!(encoded[2..], [&body[..], &record[..]].concat());
    }

    #[test]
    fn counters_are_as_the_specification_draws_them() {
        let sample = CounterSample {
            sequence: 3,
            interface: 9,
            status: LinkStatus { is_admin_up: true, is_oper_up: true },
            received_bytes: (1 << 32) + 4,
            received_packets: 5,
            input_discards: 6,
            sent_bytes: 8,
            sent_packets: 10,
            output_discards: Some(7),
        };
        let encoded = words(&counter_sample(&sample));
        assert_eq!(encoded[..8], [4, 112, 3, 0, 9, 1, 1, 88]);
        let (u, tail) = (UNKNOWN, &encoded[8..]);
        assert_eq!(tail, [9, 6, 0, 0, 0, 3, 1, 4, 5, u, u, 6, u, u, 0, 8, 10, u, u, 7, u, u]);
    }

    #[test]
    fn an_interface_without_a_carrier_is_not_administratively_down() {
        let word = |is_admin_up, is_oper_up| LinkStatus { is_admin_up, is_oper_up }.word();
        assert_eq!([word(false, false), word(true, false), word(true, true)], [0, 1, 3]);
    }

    #[test]
    fn a_datagram_has_the_agent_of_either_family() {
        let head = DatagramHead { agent: IpAddr::from([192, 0, 2, 1]), sequence: 4, uptime: 99 };
        let samples = [vec![0, 0, 0, 1], vec![0, 0, 0, 2]];
        assert_eq!(words(&datagram(&head, &samples)), [5, 1, 0xc000_0201, 0, 4, 99, 2, 1, 2]);
        let head = DatagramHead { agent: "2001:db8::1".parse().unwrap(), ..head };
        assert_eq!(words(&datagram(&head, &[])), [5, 2, 0x2001_0db8, 0, 0, 1, 0, 4, 99, 0]);
    }
}
