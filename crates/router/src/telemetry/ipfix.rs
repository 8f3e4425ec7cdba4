//! IPFIX messages (RFC 7011) about sampled packets (PSAMP, RFC 5476 and RFC 5477). Numbers of information elements are those
//! of IANA's registry.

use std::net::IpAddr;

use super::sampled_packet::SampledIp;

/// Bytes of a message at most, so that it fits into a frame of 1,500 bytes.
const MOST_BYTES: usize = 1400;
const VERSION: u16 = 10;
const MESSAGE_HEADER: usize = 16;
const SET_HEADER: usize = 4;

/// Sets of templates have these numbers, sets of data those of their templates.
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;
const INET_PACKET: u16 = 256;
const INET6_PACKET: u16 = 257;
const OTHER_PACKET: u16 = 258;
const SELECTOR: u16 = 259;
const INTERFACE_TOTALS: u16 = 260;

/// The length of an element whose length is in each record.
const VARIABLE: u16 = u16::MAX;

/// The number of an information element, and its length.
type Element = (u16, u16);

/// ingressInterface, egressInterface, flowStartMilliseconds, flowEndMilliseconds, forwardingStatus, selectorId,
/// packetDeltaCount.
const OF_EVERY_PACKET: [Element; 7] = [(10, 4), (14, 4), (152, 8), (153, 8), (89, 1), (302, 8), (2, 8)];
/// octetDeltaCount, protocolIdentifier, ipClassOfService, ipTTL, sourceTransportPort, destinationTransportPort.
const OF_IP: [Element; 6] = [(1, 8), (4, 1), (5, 1), (192, 1), (7, 2), (11, 2)];
/// sourceIPv4Address, destinationIPv4Address.
const INET_ADDRESSES: [Element; 2] = [(8, 4), (12, 4)];
/// sourceIPv6Address, destinationIPv6Address.
const INET6_ADDRESSES: [Element; 2] = [(27, 16), (28, 16)];
/// dataLinkFrameSize, dataLinkFrameSection.
const OF_FRAME: [Element; 2] = [(312, 2), (315, VARIABLE)];
/// selectorId, which is the scope, selectorAlgorithm, samplingProbability, samplingPacketInterval, samplingPacketSpace.
const SELECTOR_ELEMENTS: [Element; 5] = [(302, 8), (304, 2), (311, 8), (305, 4), (306, 4)];
/// ingressInterface, which is the scope, selectorIdTotalPktsObserved, selectorIdTotalPktsSelected, notSentPacketTotalCount.
const TOTALS_ELEMENTS: [Element; 4] = [(10, 4), (318, 8), (319, 8), (167, 8)];

/// The only selector.
const SELECTOR_ID: u64 = 1;
/// "Uniform probabilistic sampling" among the algorithms of PSAMP: each packet is as likely as another one.
const UNIFORM_PROBABILISTIC: u16 = 4;

/// What became of a packet, as forwardingStatus numbers it (RFC 7270).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ForwardingStatus {
    Unknown = 0,
    Forwarded = 64,
    Dropped = 128,
    AclDeny = 129,
    Unroutable = 131,
    Adjacency = 132,
    FragmentationNeeded = 133,
    BadChecksum = 134,
    BadTotalLength = 135,
    BadHeaderLength = 136,
    BadTtl = 137,
    ReversePath = 140,
    Consumed = 192,
    ConsumedForUs = 195,
}

/// A sampled packet.
pub struct PacketReport<'h> {
    /// Milliseconds since 1970.
    pub at: u64,
    pub ingress: u32,
    /// 0 if it does not leave, or the router does not know by which interface.
    pub egress: u32,
    pub status: ForwardingStatus,
    /// The length of the frame without the FCS.
    pub frame_len: u32,
    /// The first bytes of the frame.
    pub header: &'h [u8],
}

/// Counts of an interface since the start of the router.
pub struct InterfaceTotals {
    pub interface: u32,
    /// Packets that could have been sampled.
    pub observed: u64,
    /// Sampled packets.
    pub selected: u64,
    /// Sampled packets of which no record was sent.
    pub not_sent: u64,
}

/// A record, and the set that it belongs to.
pub struct Record {
    set: u16,
    bytes: Vec<u8>,
}

/// The templates of all records.
pub fn templates() -> Vec<Record> {
    let packet = |id, rest: &[&[Element]]| template(id, &[&[&OF_EVERY_PACKET[..]], rest].concat().concat());
    vec![
        packet(INET_PACKET, &[&OF_IP, &INET_ADDRESSES]),
        packet(INET6_PACKET, &[&OF_IP, &INET6_ADDRESSES]),
        packet(OTHER_PACKET, &[&OF_FRAME]),
        options_template(SELECTOR, &SELECTOR_ELEMENTS),
        options_template(INTERFACE_TOTALS, &TOTALS_ELEMENTS),
    ]
}

fn template(id: u16, elements: &[Element]) -> Record {
    let mut bytes = Bytes::default();
    bytes.half_words(&[id, elements.len() as u16]).elements(elements);
    Record { set: TEMPLATES, bytes: bytes.0 }
}

/// The first element is the scope.
fn options_template(id: u16, elements: &[Element]) -> Record {
    let mut bytes = Bytes::default();
    bytes.half_words(&[id, elements.len() as u16, 1]).elements(elements);
    Record { set: OPTIONS_TEMPLATES, bytes: bytes.0 }
}

/// Says how packets are sampled: one in `rate`.
pub fn selector(rate: u32) -> Record {
    let mut bytes = Bytes::default();
    bytes.long(SELECTOR_ID).half_words(&[UNIFORM_PROBABILISTIC]);
    bytes.long((1.0 / f64::from(rate)).to_bits()).word(1).word(rate - 1);
    Record { set: SELECTOR, bytes: bytes.0 }
}

pub fn interface_totals(totals: &InterfaceTotals) -> Record {
    let mut bytes = Bytes::default();
    bytes.word(totals.interface).long(totals.observed).long(totals.selected).long(totals.not_sent);
    Record { set: INTERFACE_TOTALS, bytes: bytes.0 }
}

/// The record of a packet: the fields of its IP header, or the beginning of a frame that is not IP.
pub fn packet(report: &PacketReport<'_>) -> Record {
    let mut bytes = Bytes::default();
    bytes.word(report.ingress).word(report.egress).long(report.at).long(report.at);
    bytes.raw(&[report.status as u8]).long(SELECTOR_ID).long(1);
    match SampledIp::read(report.header) {
        Some(ip) => bytes.ip(&ip),
        None => bytes.frame(report.frame_len, report.header),
    }
}

/// A message under construction.
#[derive(Default)]
pub struct Message {
    /// Closed and open sets.
    bytes: Vec<u8>,
    /// The number of the open set, and where it begins.
    open: Option<(u16, usize)>,
    /// Records that are no templates.
    data_records: u32,
}

impl Message {
    /// Adds a record, or hands it back when the message has no room for it.
    pub fn push(&mut self, record: Record) -> Result<(), Record> {
        let set_header = if self.is_open(record.set) { 0 } else { SET_HEADER };
        if MESSAGE_HEADER + self.bytes.len() + set_header + record.bytes.len() > MOST_BYTES {
            return Err(record);
        }
        if set_header > 0 {
            self.close();
            self.open = Some((record.set, self.bytes.len()));
            self.bytes.extend([0; SET_HEADER]);
        }
        self.bytes.extend(&record.bytes);
        self.data_records += u32::from(record.set >= INET_PACKET);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Records that the sequence number counts.
    pub fn data_records(&self) -> u32 {
        self.data_records
    }

    fn is_open(&self, set: u16) -> bool {
        self.open.is_some_and(|(open, _)| open == set)
    }

    /// Writes the header of the open set, whose length is known now.
    fn close(&mut self) {
        let Some((set, begin)) = self.open.take() else { return };
        let len = (self.bytes.len() - begin) as u16;
        self.bytes[begin..begin + 2].copy_from_slice(&set.to_be_bytes());
        self.bytes[begin + 2..begin + SET_HEADER].copy_from_slice(&len.to_be_bytes());
    }

    /// The message with its header: the time in seconds since 1970, and the data records in messages before it.
    pub fn finish(mut self, seconds: u32, sequence: u32) -> Vec<u8> {
        const DOMAIN: u32 = 1;
        self.close();
        let len = (MESSAGE_HEADER + self.bytes.len()) as u16;
        let mut message = Bytes::default();
        message.half_words(&[VERSION, len]).word(seconds).word(sequence).word(DOMAIN).raw(&self.bytes);
        message.0
    }
}

/// Numbers in network order.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.0.extend_from_slice(bytes);
        self
    }

    fn half_words(&mut self, words: &[u16]) -> &mut Bytes {
        words.iter().for_each(|word| self.0.extend(word.to_be_bytes()));
        self
    }

    fn word(&mut self, word: u32) -> &mut Bytes {
        self.raw(&word.to_be_bytes())
    }

    fn long(&mut self, long: u64) -> &mut Bytes {
        self.raw(&long.to_be_bytes())
    }

    fn elements(&mut self, elements: &[Element]) {
        elements.iter().for_each(|(number, len)| _ = self.half_words(&[*number, *len]));
    }

    fn ip(mut self, ip: &SampledIp) -> Record {
        self.long(ip.total_len.into()).raw(&[ip.protocol, ip.tos, ip.hops]);
        self.half_words(&[ip.ports.0, ip.ports.1]);
        let set = match (ip.source, ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.raw(&source.octets()).raw(&destination.octets());
                INET_PACKET
            }
            (source, destination) => {
                self.raw(&widened(source)).raw(&widened(destination));
                INET6_PACKET
            }
        };
        Record { set, bytes: self.0 }
    }

    fn frame(mut self, frame_len: u32, header: &[u8]) -> Record {
        // A length below 255 is one byte before the value; samples are shorter.
        let header = &header[..header.len().min(254)];
        self.half_words(&[frame_len.try_into().unwrap_or(u16::MAX)]).raw(&[header.len() as u8]).raw(header);
        Record { set: OTHER_PACKET, bytes: self.0 }
    }
}

fn widened(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(records: impl IntoIterator<Item = Record>) -> Vec<u8> {
        let mut message = Message::default();
        records.into_iter().for_each(|record| assert!(message.push(record).is_ok()));
        message.finish(0x0102_0304, 9)
    }

    #[test]
    fn a_message_begins_with_its_header_and_sets_with_theirs() {
        let totals = InterfaceTotals { interface: 7, observed: 5, selected: 2, not_sent: 1 };
        let message = finished([selector(1000), interface_totals(&totals)]);
        assert_eq!(message[..16], [0, 10, 0, 78, 1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 1]);
        assert_eq!(message[16..20], [1, 3, 0, 30]);
        assert_eq!(message[20..30], [0, 0, 0, 0, 0, 0, 0, 1, 0, 4]);
        assert_eq!(message[30..38], 0.001f64.to_be_bytes());
        assert_eq!(message[38..46], [0, 0, 0, 1, 0, 0, 3, 231]);
        assert_eq!(message[46..54], [1, 4, 0, 32, 0, 0, 0, 7]);
    }

    /// The record of a frame of 60 bytes with this type and first byte of the packet.
    fn record_of(kind: [u8; 3]) -> Record {
        let mut header = [0; 60];
        header[12..15].copy_from_slice(&kind);
        let status = ForwardingStatus::Forwarded;
        packet(&PacketReport { at: 1, ingress: 2, egress: 3, status, frame_len: 60, header: &header })
    }

    #[test]
    fn records_are_as_long_as_their_templates_say() {
        let len = |elements: &[&[Element]]| {
            elements.concat().iter().map(|(_, len)| usize::from(*len)).sum::<usize>()
        };
        let inet = record_of([8, 0, 0x45]);
        assert_eq!((inet.set, inet.bytes.len()), (256, len(&[&OF_EVERY_PACKET, &OF_IP, &INET_ADDRESSES])));
        let inet6 = record_of([0x86, 0xdd, 0x60]);
        assert_eq!((inet6.set, inet6.bytes.len()), (257, len(&[&OF_EVERY_PACKET, &OF_IP, &INET6_ADDRESSES])));
        let other = record_of([8, 6, 0]);
        let fixed = len(&[&OF_EVERY_PACKET]);
        assert_eq!((other.set, &other.bytes[fixed..fixed + 3]), (258, &[0, 60, 60][..]));
        assert_eq!((other.bytes.len(), &other.bytes[fixed + 15..fixed + 17]), (fixed + 63, &[8, 6][..]));
    }

    #[test]
    fn a_full_message_hands_records_back_and_counts_data_only() {
        let mut message = Message::default();
        templates().into_iter().for_each(|template| assert!(message.push(template).is_ok()));
        assert_eq!(message.data_records(), 0);
        let pushed = (0..100).take_while(|_| message.push(selector(1)).is_ok()).count();
        assert!(pushed < 100 && message.data_records() == pushed as u32);
        assert!(message.finish(0, 0).len() <= MOST_BYTES);
    }
}
