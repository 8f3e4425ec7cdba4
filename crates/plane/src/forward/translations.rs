//! The packets of a burst that the filter translates, and what they were before: a packet that is not forwarded in the end
//! comes back as it came in.

use fullview_filter::rule::Side;
use fullview_filter::state::FlowKey;
use fullview_filter::state::flow::{FlowTranslation, WireFlow};
use fullview_filter::verdict::Rewrite;

use super::keys::TableKeys;
use super::translate::{PacketEnds, translate, translate_flow};
use super::wire_flow::WireFamily;
use crate::burst::{BURST, Packet, Slot};
use crate::verdict::{Punt, Reason, Verdict};
use crate::wire::ethernet::{Frame, HEADER as ETHERNET, TAG};

/// A packet of a known flow.
struct KnownTranslated {
    before: FlowKey,
    position: u8,
    /// Which ends were translated.
    destination: bool,
    source: bool,
}

/// A translation of one packet in one pass.
struct Translated {
    /// The place of the packet in the filter's list, in this pass.
    place: u8,
    /// Its position in the burst.
    position: u8,
    rewrite: Rewrite,
    /// What was there before; `None` until it is written, and if it cannot be.
    before: Option<PacketEnds>,
}

/// The translations of one burst: at most one for each packet in each pass.
pub(super) struct Translations {
    entries: Vec<Translated>,
    /// How many of them are written.
    written: usize,
    known: Vec<KnownTranslated>,
}

/// Has room for a whole burst in both passes, so that the loop never allocates.
impl Default for Translations {
    fn default() -> Translations {
        Translations { entries: Vec::with_capacity(2 * BURST), written: 0, known: Vec::with_capacity(BURST) }
    }
}

impl Translations {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.written = 0;
        self.known.clear();
    }

    /// Whether nothing is translated.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.known.is_empty()
    }

    /// Whether nothing is decided.
    pub fn is_undecided(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the decision about the packet at `place` of the filter's list.
    #[inline]
    pub fn push(&mut self, place: usize, position: u8, rewrite: Rewrite) {
        self.entries.push(Translated { place: place as u8, position, rewrite, before: None });
    }

    /// Translates a plain packet of a known flow.
    #[inline]
    pub fn translate_known<A: WireFamily>(
        &mut self,
        position: usize,
        packet: &mut Slot,
        (from, translation): (WireFlow<A>, &FlowTranslation<A>),
    ) {
        translate_flow(&mut packet.frame_mut()[ETHERNET..], translation);
        let FlowTranslation { destination, source, .. } = *translation;
        self.known.push(KnownTranslated {
            before: from.key(),
            position: position as u8,
            destination,
            source,
        });
    }

    /// Writes what was decided since the last call into the packets. `written` gets the place of each, with the packet; `None`
    /// if its headers do not allow it.
    #[inline(never)]
    pub fn write(&mut self, packets: &mut [Packet<'_>], mut written: impl FnMut(usize, Option<&Slot>)) {
        for entry in &mut self.entries[self.written..] {
            let packet = &mut *packets[usize::from(entry.position)];
            entry.before = translate(&mut packet.frame_mut()[ETHERNET..], &PacketEnds::from(&entry.rewrite));
            if entry.before.is_none() {
                packet.verdict = Verdict::Drop(Reason::FilterUnreadable);
            }
            written(usize::from(entry.place), entry.before.is_some().then_some(&*packet));
        }
        self.written = self.entries.len();
    }

    /// Looks up the new destinations instead of the old ones. The list of the filter has the order of the tables.
    #[inline(never)]
    pub fn replace_keys(&self, tables: &mut [TableKeys]) {
        let mut entries =
            self.entries.iter().filter(|entry| entry.rewrite.side == Side::Destination).peekable();
        let mut next_of = |position: usize| {
            let entry = entries.next_if(|entry| usize::from(entry.position) == position);
            entry.map(|entry| entry.rewrite.address.0)
        };
        for table in tables {
            for (position, key) in table.inet.destinations.keys_mut() {
                next_of(position).into_iter().for_each(|address| *key = address as u32);
            }
            for (position, key) in table.inet6.destinations.keys_mut() {
                next_of(position).into_iter().for_each(|address| *key = address);
            }
        }
    }

    /// Whether the packet at this position is translated.
    #[cold]
    pub fn contains(&self, position: usize) -> bool {
        let known = self.known.iter().map(|entry| entry.position);
        self.entries.iter().map(|entry| entry.position).chain(known).any(|at| usize::from(at) == position)
    }

    /// Restores the packets that are not forwarded, when all of them have their verdicts.
    #[inline(never)]
    pub fn restore_rejected(&self, packets: &mut [Packet<'_>]) {
        for entry in self.entries.iter().rev() {
            let packet = &mut *packets[usize::from(entry.position)];
            entry.before.into_iter().for_each(|before| restore(packet, entry.rewrite.side, &before));
        }
        for KnownTranslated { before, position, destination, source } in &self.known {
            let packet = &mut *packets[usize::from(*position)];
            if *source {
                let end = PacketEnds::of(Side::Source, before.source, before.source_port);
                restore(packet, Side::Source, &end);
            }
            if *destination {
                let end = PacketEnds::of(Side::Destination, before.destination, before.destination_port);
                restore(packet, Side::Destination, &end);
            }
        }
    }
}

/// Gives a packet what was there before on one side, if its verdict asks for that.
fn restore(packet: &mut Slot, side: Side, before: &PacketEnds) {
    if is_restored(packet.verdict, side) {
        let at = network_header(packet);
        // It can be written, as it was written before.
        let _ = translate(&mut packet.frame_mut()[at..], before);
    }
}

/// Whether a packet with this verdict gets its old end back. The slow path answers the original packet, and forwards the
/// translated one. It looks up again where one leads that is too long, and reports that to its sender.
fn is_restored(verdict: Verdict, side: Side) -> bool {
    match verdict {
        Verdict::Forward
        | Verdict::Punt(Punt::Glean)
        | Verdict::Drop(Reason::NeedsFragments | Reason::NoAdjacency) => false,
        Verdict::Drop(Reason::TooBig) => side == Side::Source,
        _ => true,
    }
}

/// The offset of the IP header of a packet that has its tag again.
fn network_header(packet: &Slot) -> usize {
    let is_tagged = Frame::new_unchecked(packet.frame()).tag_control().is_some();
    if is_tagged { ETHERNET + TAG } else { ETHERNET }
}
