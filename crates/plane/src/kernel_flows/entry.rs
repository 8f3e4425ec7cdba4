//! What an entry says about a flow.

use fullview_filter::address::Family;
use fullview_filter::state::flow::FlowWords;

use crate::adjacency::CompiledAdjacency;
use crate::interface::Interface;
use crate::wire::ethernet::{HEADER, Mac, TAG};

/// The words of an entry, and the places of those that do not change.
pub(super) const ENTRY: usize = 16;
const ADDRESSES: usize = 2;
const ENDS: usize = 6;
const INGRESS: usize = 7;
const STATION: usize = 11;
const MACS: usize = 12;
const DEVICE: usize = 13;
const LINK: usize = 14;
const WORKER: usize = 15;

/// The words of an entry that the worker writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryWords(pub [u64; ENTRY]);

/// The device of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDevice {
    /// Its index in the kernel.
    pub index: u32,
    /// What forwards frames that it receives.
    pub program: Option<PortProgram>,
    /// Whether its driver takes frames that XDP programs of other devices redirect.
    pub takes_frames: bool,
}

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProgram {
    Tc,
    Xdp,
}

impl PortDevice {
    /// Whether a program can forward frames from here to the other device.
    pub(super) fn reaches(self, other: PortDevice) -> bool {
        other.index != 0
            && match self.program {
                None => false,
                Some(PortProgram::Tc) => true,
                Some(PortProgram::Xdp) => other.takes_frames,
            }
    }
}

/// The windows with which segments of a flow are compared, and which of their ends these come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowsOfFlow {
    pub record: u32,
    pub end: u16,
}

impl WindowsOfFlow {
    /// Those of an entry with these words, if it has any.
    pub fn of(word: impl Fn(usize) -> u64) -> Option<WindowsOfFlow> {
        let [_, _, end @ .., a, b, c, d] = word(WORKER).to_ne_bytes();
        let record = u32::from_ne_bytes([a, b, c, d]);
        (record != 0).then_some(WindowsOfFlow { record, end: u16::from_ne_bytes(end) })
    }

    /// Those of the same connection for segments that come from its other end.
    pub fn answering(self) -> WindowsOfFlow {
        WindowsOfFlow { end: self.end ^ 1, ..self }
    }
}

/// The interfaces of a flow, as far as they are needed to count frames.
pub(super) struct FlowEnds {
    /// Ingress and egress.
    pub interfaces: [u16; 2],
    /// Bytes of a frame's headers there.
    pub headers: [u64; 2],
}

impl FlowEnds {
    /// Those of an entry with these words.
    pub fn of(word: impl Fn(usize) -> u64) -> FlowEnds {
        let link = word(LINK).to_ne_bytes();
        let [vlan, ingress, egress] = [2, 4, 6].map(|at| u16::from_ne_bytes([link[at], link[at + 1]]));
        let header = |is_tagged: bool| (HEADER + if is_tagged { TAG } else { 0 }) as u64;
        FlowEnds {
            interfaces: [ingress, egress],
            headers: [header(word(INGRESS) >> 32 != 0), header(vlan != 0)],
        }
    }
}

/// Everything about a flow that follows from a view.
pub(super) struct FlowPath<'v> {
    pub flow: FlowWords,
    pub ingress: &'v Interface,
    pub egress: &'v Interface,
    pub adjacency: &'v CompiledAdjacency,
    /// Ingress and egress.
    pub devices: [PortDevice; 2],
}

impl FlowPath<'_> {
    /// The words of an entry of the worker with this number, without generation and times.
    pub fn words(&self, worker: u16, windows: Option<WindowsOfFlow>) -> EntryWords {
        let FlowPath { flow, ingress, egress, adjacency, devices: [from, to] } = self;
        let mut words = [0; ENTRY];
        words[ADDRESSES..ENDS].copy_from_slice(&flow.addresses.map(native_pair));
        words[ENDS] = u64::from(flow.ports.to_le())
            | u64::from(flow.protocol) << 32
            | if flow.family == Family::Inet { 4 << 40 } else { 6 << 40 };
        words[INGRESS] = u64::from(from.index) | u64::from(ingress.vlan.unwrap_or(0)) << 32;
        words[STATION] = station(ingress.mac);
        let macs = adjacency.macs.as_chunks::<4>().0;
        words[MACS] = word_of(macs[0], macs[1]);
        words[DEVICE] = word_of(macs[2], to.index.to_ne_bytes());
        let mtu = mtu(egress, flow.family);
        words[LINK] = side_by_side([mtu, adjacency.vlan, flow.interface, adjacency.interface]);
        let WindowsOfFlow { record, end } = windows.unwrap_or(WindowsOfFlow { record: 0, end: 0 });
        let [a, b, c, d] = record.to_ne_bytes();
        let record = [[a, b], [c, d]].map(u16::from_ne_bytes);
        words[WORKER] = side_by_side([worker, end, record[0], record[1]]);
        EntryWords(words)
    }
}

/// Four numbers that lie side by side.
fn side_by_side(numbers: [u16; 4]) -> u64 {
    let [[a, b], [c, d], [e, f], [g, h]] = numbers.map(u16::to_ne_bytes);
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn word_of([a, b, c, d]: [u8; 4], [e, f, g, h]: [u8; 4]) -> u64 {
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Eight bytes of a header as the program reads them: the first four are the lower half, each in the machine's order.
fn native_pair(little: u64) -> u64 {
    let [low, high] = [little as u32, (little >> 32) as u32].map(u32::to_le);
    u64::from(low) | u64::from(high) << 32
}

/// A MAC address as the program reads it, in three parts of the machine's order.
fn station(Mac([a, b, c, d, e, f]): Mac) -> u64 {
    let [low, middle, high] = [[a, b], [c, d], [e, f]].map(|pair| u64::from(u16::from_ne_bytes(pair)));
    low | middle << 16 | high << 32
}

/// The longest packet of the next link, also if no slot would hold it.
fn mtu(egress: &Interface, family: Family) -> u16 {
    let family = match family {
        Family::Inet => fullview_table::Family::Inet,
        Family::Inet6 => fullview_table::Family::Inet6,
    };
    egress.mtu_of(family).min(u16::MAX.into()) as u16
}

impl EntryWords {
    /// The hash by which the program finds the entry.
    pub fn hash(&self, keys: &[u64; 2]) -> u64 {
        let is_inet = self.0[ENDS] >> 40 == 4;
        let addresses = &self.0[ADDRESSES..if is_inet { ADDRESSES + 1 } else { ENDS }];
        let words = addresses.iter().chain(&self.0[ENDS..=INGRESS]);
        words.fold(keys[0], |hash, word| {
            let hash = (hash ^ word).wrapping_mul(keys[1]);
            hash ^ hash >> 32
        })
    }
}
