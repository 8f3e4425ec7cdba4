//! The program that forwards packets of known flows, `bpf/known_flow.h`, written again for one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fullview_plane::forward::BurstFilter;
use fullview_plane::kernel_flows::{
    FlowMemory, FlowRegions, FlowSharing, FlowWords, GracePeriods, PortDevice, PortProgram, Region,
};
use fullview_plane::wire::ethernet::{EtherType, Frame, HEADER as ETHERNET};
use fullview_plane::wire::ipv4::Ipv4Packet;
use fullview_plane::wire::ipv6::Ipv6Packet;

const KEYS: [u64; 2] = [0x1234_5678_9abc_def0, 0x9e37_79b9_7f4a_7c15];
const FORWARDS: u64 = 1 << 63;
const ONE_PACKET: u64 = 1 << 36;

#[derive(Clone, Debug)]
struct SharedWords(Arc<[AtomicU64]>);

impl FlowWords for SharedWords {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// The program, and the memory that it shares with a filter.
pub struct Program {
    head: SharedWords,
    buckets: SharedWords,
    entries: SharedWords,
    windows: SharedWords,
    pub memory: Arc<FlowMemory>,
    pub grace: Arc<GracePeriods>,
    pub packets: u64,
}

/// What a packet shows.
struct Shown {
    /// The words of an entry from the addresses to the ingress.
    flow: [u64; 6],
    is_inet6: bool,
    bytes: u64,
    padding: u64,
    segment: Segment,
}

/// What a segment of TCP shows.
#[derive(Default)]
struct Segment {
    sequence: u32,
    acknowledged: u32,
    window: u32,
    payload: u32,
}

impl Program {
    /// A program with room for so many flows of these workers, which forwards between the first three ports.
    pub fn new<'f>(flows: u16, filters: impl ExactSizeIterator<Item = &'f mut BurstFilter>) -> Program {
        let regions = FlowRegions::new(flows, filters.len() as u16);
        let part = |region| SharedWords((0..regions.words(region)).map(|_| AtomicU64::new(0)).collect());
        let [head, buckets, entries, windows] = Region::ALL.map(part);
        let memory = FlowMemory::new::<()>(regions, KEYS, |region| {
            let words = match region {
                Region::Head => &head,
                Region::Buckets => &buckets,
                Region::Entries => &entries,
                Region::Windows => &windows,
            };
            Ok(Box::new(words.clone()))
        });
        let (memory, grace) = (Arc::new(memory.unwrap()), Arc::<GracePeriods>::default());
        let device = |index| PortDevice { index, program: Some(PortProgram::Tc), takes_frames: false };
        for (worker, filter) in (0..).zip(filters) {
            filter.share_flows(FlowSharing::new(Arc::clone(&memory), Arc::clone(&grace), worker));
            filter.set_devices((1..4).map(device).collect());
        }
        Program { head, buckets, entries, windows, memory, grace, packets: 0 }
    }

    /// How many entries let packets pass.
    pub fn forwarding(&self) -> usize {
        self.entries
            .0
            .as_chunks::<16>()
            .0
            .iter()
            .filter(|entry| entry[0].load(Relaxed) & FORWARDS != 0)
            .count()
    }

    /// The port that a frame leaves by, and what becomes of it, if the program forwards it at this time.
    pub fn forward(&mut self, port: u16, frame: &[u8], milliseconds: u64) -> Option<(u16, Vec<u8>)> {
        let now = milliseconds * 1_000_000;
        let vlan = Frame::new_unchecked(frame).vlan();
        let mut plain = frame.to_vec();
        if vlan.is_some() {
            plain.drain(12..16);
        }
        let ingress = u64::from(port + 1) | u64::from(vlan.unwrap_or(0)) << 32;
        let shown = Shown::of(&plain, ingress)?;
        let entry = self.find(&shown, &plain)?;
        let word = |at: usize| entry[at].load(Relaxed);
        let [worker, end, record] = [word(15) & 0xffff, word(15) >> 16 & 1, word(15) >> 32];
        let of_worker = worker as usize * 8;
        let places = [0, 1, of_worker + 2, of_worker + 3];
        let [generation, control, worker, ended] = places.map(|at| self.head.0[at].load(Relaxed));
        let holds = word(8) == generation + ended
            && now < control
            && now < worker
            && (now.wrapping_sub(word(1)) as i64) < word(9) as i64;
        let [mtu, to_vlan] =
            [0, 2].map(|at| u16::from_ne_bytes([link(word(14))[at], link(word(14))[at + 1]]));
        if !holds || shown.bytes > u64::from(mtu) {
            return None;
        }
        let windows = &self.windows.0[record as usize * 8..][..8];
        let forwards = word(0) & FORWARDS != 0;
        if record != 0 && !(forwards && follow_windows(windows, end as usize, &shown.segment)) {
            return None;
        }
        if entry[0].fetch_add(ONE_PACKET + shown.bytes, Relaxed) & FORWARDS == 0 {
            return None;
        }
        entry[1].store(now, Relaxed);
        entry[10].fetch_add(shown.padding, Relaxed);
        plain[..8].copy_from_slice(&word(12).to_ne_bytes());
        plain[8..12].copy_from_slice(&word(13).to_ne_bytes()[..4]);
        let device = (word(13) >> 32) as u16;
        rewrite(&mut plain, shown.is_inet6);
        if to_vlan != 0 {
            plain.splice(12..12, [0x81, 0].into_iter().chain(to_vlan.to_be_bytes()));
        }
        self.packets += 1;
        Some((device - 1, plain))
    }

    fn find(&self, shown: &Shown, frame: &[u8]) -> Option<&[AtomicU64]> {
        let hash = shown.hash();
        let buckets = self.buckets.0.len() / 4;
        let bucket = &self.buckets.0[hash as usize % buckets * 4..][..4];
        let slot = bucket.iter().map(|slot| slot.load(Relaxed)).find(|slot| (slot ^ hash) >> 16 == 0)?;
        let entry = &self.entries.0[(slot & 0xffff) as usize * 16..][..16];
        let is_it = (0..6).all(|at| entry[2 + at].load(Relaxed) == shown.flow[at]);
        let station = entry[11].load(Relaxed).to_le_bytes();
        (is_it && station[..6] == frame[..6]).then_some(entry)
    }
}

fn link(word: u64) -> [u8; 8] {
    word.to_ne_bytes()
}

impl Shown {
    fn of(frame: &[u8], ingress: u64) -> Option<Shown> {
        let room = frame.len().checked_sub(ETHERNET)? as u64;
        let ip = &frame[ETHERNET..];
        let (mut flow, is_inet6) = ([0; 6], Frame::new_unchecked(frame).ethertype() == EtherType::IPV6);
        let (protocol, addresses, transport, version, bytes) = if is_inet6 {
            let header = Ipv6Packet::new_checked(ip).ok()?;
            let is_plain = ip[0] >> 4 == 6 && header.hop_limit() > 1;
            let protocol = header.next_header();
            (protocol, &ip[8..40], ip.get(40..).filter(|_| is_plain)?, 6, header.total_len() as u64)
        } else {
            let header = Ipv4Packet::new_checked(ip).ok()?;
            let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff;
            let is_plain = ip[0] == 0x45 && fragment == 0 && ip[8] > 1;
            (ip[9], &ip[12..20], ip.get(20..).filter(|_| is_plain)?, 4, u64::from(header.total_len()))
        };
        for (word, bytes) in flow.iter_mut().zip(addresses.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let is_segment = || {
            let length = transport.get(12).map_or(0, |byte| u64::from(byte >> 4) * 4);
            let header = bytes - if is_inet6 { 40 } else { 20 };
            (20..=header).contains(&length) && transport[13] & !0x08 == 0x10
        };
        if !(protocol == 17 || protocol == 6 && is_segment()) {
            return None;
        }
        let mut segment = Segment::default();
        if protocol == 6 {
            let number = |at: usize| u32::from_be_bytes(*transport[at..].first_chunk().unwrap_or(&[0; 4]));
            let header = u64::from(transport[12] >> 4) * 4 + if is_inet6 { 40 } else { 20 };
            segment = Segment {
                sequence: number(4),
                acknowledged: number(8),
                window: number(14) >> 16,
                payload: (bytes - header) as u32,
            };
        }
        let ports = u32::from_le_bytes(*transport.first_chunk()?);
        flow[4] = u64::from(ports) | u64::from(protocol) << 32 | version << 40;
        flow[5] = ingress;
        let padding = room.checked_sub(bytes)?;
        Some(Shown { flow, is_inet6, bytes, padding, segment })
    }

    fn hash(&self) -> u64 {
        let addresses = if self.is_inet6 { 4 } else { 1 };
        let words = self.flow[..addresses].iter().chain(&self.flow[4..]);
        words.fold(KEYS[0], |hash, word| {
            let hash = (hash ^ word).wrapping_mul(KEYS[1]);
            hash ^ hash >> 32
        })
    }
}

/// Whether a plain segment is valid in an established connection. The comparisons are those of the paper that
/// `crates/filter/src/state/tcp.rs` names, with 64-bit distances from the end's own position.
fn follow_windows(windows: &[AtomicU64], end: usize, segment: &Segment) -> bool {
    const SLACK: i64 = 0xffff + 1500;
    let word = |at: usize| windows[at].load(Relaxed);
    let halves = |at: usize| [word(at) as u32, (word(at) >> 32) as u32];
    let ([sent, others_limit], [others_sent, limit]) = (halves(end), halves(end ^ 1));
    let distance = |to: u32, from: u32| i64::from(to.wrapping_sub(from) as i32);
    let (first, last) = match segment.payload {
        0 => (sent, sent),
        bytes => (segment.sequence, segment.sequence.wrapping_add(bytes)),
    };
    let repeatable = (word(2 + (end ^ 1)) as u32) << word(4 + (end ^ 1));
    let shift = word(4 + end);
    let ahead = distance(segment.acknowledged, others_sent);
    let is_valid = distance(last, limit) <= 0
        && distance(first, sent.wrapping_sub(repeatable)) >= 0
        && (-(SLACK << shift)..=SLACK).contains(&ahead);
    if !is_valid {
        return false;
    }
    let later = |a: u32, b: u32| if distance(a, b) > 0 { a } else { b };
    let opened = segment.acknowledged.wrapping_add((segment.window << shift).max(1));
    let moved = [later(last, sent), later(opened, others_limit)];
    let is_near = moved.iter().zip(halves(6 + end)).all(|(to, seen)| to.wrapping_sub(seen) <= 0x6000_0000);
    if is_near {
        windows[end].store(u64::from(moved[0]) | u64::from(moved[1]) << 32, Relaxed);
        windows[2 + end].fetch_max(segment.window.into(), Relaxed);
    }
    is_near
}

fn rewrite(frame: &mut [u8], is_inet6: bool) {
    if is_inet6 {
        frame[ETHERNET + 7] -= 1;
    } else {
        let mut ip = Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]);
        ip.set_ttl(ip.ttl() - 1);
        ip.fill_checksum();
    }
}
