//! Frames: what is constant in them is written once, into templates; per packet only a flow's fields are patched in.
//!
//! All frames are UDP over IPv4 or IPv6 over Ethernet, TTL or hop limit 64. Sizes are those of frames without FCS.
//! IPv4 packets carry UDP checksum 0 (none, RFC 768); IPv6 packets a valid one, which RFC 8200 demands. What follows
//! the headers is a [`Stamp`] where it fits, and then a pattern that depends on the offset only, so that a slot of
//! packet memory needs it once ([`Frames::prepare`]) and not once a packet.

use std::marker::PhantomData;

use fullview_table::Address;
use serde::{Deserialize, Serialize};

use fullview_plane::burst::Slot;
use fullview_plane::wire::checksum::Sum;
use fullview_plane::wire::ethernet::{self, EtherType, Mac};

use super::flow::Flow;

mod ipv4;
mod ipv6;
mod stamp;

pub use ipv6::udp_checksum;
pub use stamp::Stamp;

/// Longest frame that is generated: room for a VLAN tag and more is left in a slot.
pub const LARGEST: usize = 2000;

/// TTL or hop limit as sent.
pub const HOP_LIMIT: u8 = 64;

/// Frame sizes without FCS, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameSize {
    /// 60 for IPv4, 62 for IPv6: an IPv6 UDP frame with no payload does not fit into 60.
    #[default]
    Smallest,
    /// All frames of this size, up to [`LARGEST`].
    Bytes(usize),
    /// Simple IMIX, 7 : 4 : 1 of IP packets of 40, 576 and 1,500 bytes, in a cycle of twelve packets: frames of 60
    /// (the 54 of a 40-byte packet are padded up to Ethernet's smallest; 62 for IPv6), 590 and 1,514 bytes.
    Imix,
}

impl FrameSize {
    /// The lengths of consecutive frames, which repeat from the start.
    pub fn lengths(self, smallest: usize) -> Vec<usize> {
        match self {
            FrameSize::Smallest => vec![smallest],
            FrameSize::Bytes(bytes) => vec![bytes],
            FrameSize::Imix => IMIX.iter().map(|bytes| smallest.max(*bytes)).collect(),
        }
    }
}

/// The cycle of [`FrameSize::Imix`]: 0 stands for the smallest. The long ones stand as far apart as possible.
const IMIX: [usize; 12] = [0, 590, 0, 0, 590, 0, 1514, 0, 590, 0, 0, 590];

/// The Ethernet addresses of generated frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Macs {
    /// The generator's.
    pub source: Mac,
    /// The router's.
    pub destination: Mac,
}

/// A size no frame can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {family} UDP frame has {size} bytes; give {smallest} to {LARGEST} (without FCS)")]
pub struct SizeError {
    /// What was asked for.
    pub size: usize,
    /// The smallest possible.
    pub smallest: usize,
    /// `inet` or `inet6`.
    pub family: fullview_table::Family,
}

/// What is the same in all frames of one size.
pub struct Template {
    len: usize,
    /// The first bytes of the frame: headers, and the pattern after them.
    head: [u8; 64],
    /// Sum of all constant bytes under the checksum that is computed per packet.
    sum: Sum,
    udp_len: u16,
    stamped: bool,
}

impl Template {
    /// Frame length in bytes.
    pub fn frame_len(&self) -> usize {
        self.len
    }

    /// Whether the frame has room for a [`Stamp`].
    pub fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Where the pattern begins in a frame whose payload begins at `payload`.
    pub fn body_at(&self, payload: usize) -> usize {
        payload + if self.stamped { Stamp::LEN } else { 0 }
    }
}

/// Writes packet number `sequence` of a flow into a slot prepared by [`Frames::prepare`].
#[inline(always)]
pub fn write<A: Headers>(slot: &mut Slot, template: &Template, flow: &Flow<A>, sequence: u64) {
    slot.set_frame_len(template.len);
    A::write_head(slot.head_mut(), template, flow, sequence);
    if template.stamped {
        A::write_tail(slot.frame_mut(), Stamp { sequence, flow: flow.id });
    }
}

/// What differs between the families: where the headers lie, and how a flow goes into them.
pub trait Headers: Address {
    /// Smallest frame in bytes.
    const SMALLEST: usize;
    /// Bytes of Ethernet, IP and UDP headers: where the payload begins.
    const PAYLOAD: usize;
    /// Byte of the frame that holds the TTL or hop limit.
    const HOP_LIMIT_AT: usize;
    /// Bytes of the IP header's own checksum; empty for IPv6.
    const CHECKSUM_AT: std::ops::Range<usize>;

    /// The template of one size; `len` lies in [`Headers::SMALLEST`]`..=`[`LARGEST`].
    fn template(macs: Macs, len: usize) -> Template;

    /// Writes headers and stamp of one packet into the frame's first 64 bytes, or as far as they reach there.
    fn write_head(head: &mut [u8; 64], template: &Template, flow: &Flow<Self>, sequence: u64);

    /// Writes what of the stamp lies beyond byte 64 of a frame that has room for it.
    fn write_tail(frame: &mut [u8], stamp: Stamp);

    /// The number of the flow as the frame carries it; valid only after the frame has been compared with that
    /// flow.
    fn flow_id(head: &[u8; 64]) -> u32;

    /// The stamp, if the frame is long enough for one.
    fn stamp(frame: &[u8]) -> Option<Stamp> {
        Stamp::from_bytes(frame.get(Self::PAYLOAD..)?)
    }

    /// Whether the IP header's own checksum is right; IPv6 has none.
    fn header_checksum_holds(head: &[u8; 64]) -> bool;
}

/// Templates in the order in which packets use them.
pub struct Frames<A> {
    templates: Vec<Template>,
    /// By packet number modulo its length.
    cycle: Vec<u8>,
    /// The payload pattern, at the offsets of a frame.
    body: [u8; LARGEST],
    family: PhantomData<A>,
}

impl<A: Headers> Frames<A> {
    /// Templates for all sizes that `size` means.
    pub fn new(size: FrameSize, macs: Macs) -> Result<Self, SizeError> {
        let body = std::array::from_fn(pattern);
        let mut frames = Frames { templates: Vec::new(), cycle: Vec::new(), body, family: PhantomData };
        for len in size.lengths(A::SMALLEST) {
            let index = frames.index_of(macs, len)?;
            frames.cycle.push(index);
        }
        Ok(frames)
    }

    fn index_of(&mut self, macs: Macs, len: usize) -> Result<u8, SizeError> {
        if !(A::SMALLEST..=LARGEST).contains(&len) {
            return Err(SizeError { size: len, smallest: A::SMALLEST, family: A::FAMILY });
        }
        let known = self.templates.iter().position(|template| template.len == len);
        let index = known.unwrap_or_else(|| {
            self.templates.push(A::template(macs, len));
            self.templates.len() - 1
        });
        // At most three sizes: the IMIX.
        Ok(index as u8)
    }

    /// Writes the payload pattern over the whole slot. Needed once per slot before [`write()`]: the packets that then
    /// pass through it overwrite headers and stamps only. So a router that damages a payload damages those of all
    /// packets that use the slot later: the first wrong packet shows where the fault began; the count of wrong packets does not.
    pub fn prepare(&self, slot: &mut Slot) {
        slot.set_frame(&self.body);
    }

    /// The template of all packets, if there is but one.
    pub fn uniform(&self) -> Option<&Template> {
        match self.templates.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The templates of consecutive packets, from one turn on, without end.
    pub fn templates_from(&self, turn: usize) -> impl Iterator<Item = &Template> {
        let turns = self.cycle.iter().cycle().skip(turn);
        turns.map(|index| &self.templates[usize::from(*index)])
    }

    /// Packets after which the sizes come round again.
    pub fn turns(&self) -> usize {
        self.cycle.len()
    }

    /// The template of a turn; turns count from 0 to [`Frames::turns`]` - 1`.
    pub fn template(&self, turn: usize) -> &Template {
        &self.templates[usize::from(self.cycle[turn])]
    }

    /// The template of that frame length, if packets of that length are sent at all.
    pub fn of_len(&self, len: usize) -> Option<&Template> {
        self.templates.iter().find(|template| template.len == len)
    }

    /// What follows headers and stamp in a frame of that template.
    pub fn body(&self, template: &Template) -> &[u8] {
        &self.body[template.body_at(A::PAYLOAD)..template.len]
    }
}

/// Ethernet addresses and type, and the pattern behind them.
fn ethernet_head(macs: Macs, ethertype: EtherType) -> [u8; 64] {
    let mut head = std::array::from_fn(pattern);
    let mut frame = ethernet::Frame::new_unchecked(&mut head[..]);
    frame.set_destination(macs.destination);
    frame.set_source(macs.source);
    frame.set_outer_ethertype(ethertype);
    head
}

/// The payload byte at that offset of the frame. A multiple of an odd number, so that shifted data show.
const fn pattern(offset: usize) -> u8 {
    (offset as u8).wrapping_mul(37)
}
