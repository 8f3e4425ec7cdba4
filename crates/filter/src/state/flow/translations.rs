//! Flows whose packets are translated. The states of their second pass know them by another flow than the wire shows, if they are
//! translated as they come in: by that flow their entries are found too.

use super::addresses::{FlowAddresses, WireFlow};
use super::finder::FlowHash;
use crate::memory::LargeArray;

/// What becomes of a flow's packets. At least one of both ends is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTranslation<A> {
    /// The flow as it leaves. The interface is that by which it comes in.
    pub to: WireFlow<A>,
    /// Whether the destination is translated, as packets come in.
    pub destination: bool,
    /// Whether the source is translated, as they leave.
    pub source: bool,
    /// The sum of what changes in the words of the addresses (~m + m' of RFC 1624), in network byte order.
    pub address_change: u16,
    /// The same with the ports.
    pub change: u16,
}

impl<A: FlowAddresses> FlowTranslation<A> {
    /// From one flow to another one.
    pub(super) fn new(from: &WireFlow<A>, to: WireFlow<A>, [destination, source]: [bool; 2]) -> Self {
        let [(before, with_ports), (after, with_new)] = [from, &to].map(sums);
        FlowTranslation {
            to,
            destination,
            source,
            address_change: folded(u64::from(!before) + u64::from(after)),
            change: folded(u64::from(!with_ports) + u64::from(with_new)),
        }
    }

    /// What a flow is between both passes of its packets.
    pub fn between(&self, flow: &WireFlow<A>) -> WireFlow<A> {
        flow.with_destination_of(&self.to)
    }
}

/// The one's complement sums of a flow's addresses, and of these and its ports. They are the same in either byte order (RFC 1071,
/// section 2.B).
fn sums<A: FlowAddresses>(flow: &WireFlow<A>) -> (u16, u16) {
    let words = flow.words();
    let halves = words.addresses.iter().flat_map(|word| [word & 0xffff_ffff, word >> 32]);
    let addresses: u64 = halves.sum();
    [addresses, addresses + u64::from(words.ports)].map(|sum| folded(sum).swap_bytes()).into()
}

fn folded(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The end of a list.
const END: u32 = u32::MAX;

/// The translations of a cache's entries, and lists of those that are translated as they come in.
#[derive(Debug)]
pub(super) struct FlowTranslations<A> {
    entries: LargeArray<Option<FlowTranslation<A>>>,
    /// The first entry of each list, by the hash of the flow between both passes.
    first: Box<[u32]>,
    /// The entry after each entry in its list.
    next: Box<[u32]>,
    /// Whether there ever was a translation.
    is_used: bool,
}

impl<A: FlowAddresses> FlowTranslations<A> {
    /// For so many entries, a power of two or none.
    pub fn new(entries: usize) -> Self {
        let ends = || vec![END; entries].into();
        FlowTranslations {
            entries: LargeArray::new(None, entries),
            first: ends(),
            next: ends(),
            is_used: false,
        }
    }

    /// Whether no flow was ever translated.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        !self.is_used
    }

    /// The translations of all entries.
    #[inline(always)]
    pub fn entries(&self) -> &[Option<FlowTranslation<A>>] {
        &self.entries
    }

    /// The translation of an entry, if it has one.
    #[inline(always)]
    pub fn get(&self, place: usize) -> Option<&FlowTranslation<A>> {
        // So that nothing waits for their memory where no rule translates.
        if self.is_empty() {
            return None;
        }
        self.entries.get(place)?.as_ref()
    }

    /// Sets what becomes of an entry's packets. `hashes` are those of the flow between both passes, before and now.
    pub fn set(&mut self, place: usize, new: Option<FlowTranslation<A>>, hashes: [FlowHash; 2]) {
        let [before, now] = hashes.map(|hash| self.list(hash));
        if is_listed(&self.entries[place]) {
            self.unlink(place, before);
        }
        self.is_used |= new.is_some();
        if is_listed(&new) {
            self.next[place] = self.first[now];
            self.first[now] = place as u32;
        }
        self.entries[place] = new;
    }

    /// The first entry that may be of a flow with this hash between both passes.
    pub fn first(&self, hash: FlowHash) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        self.first.get(self.list(hash)).copied().and_then(entry)
    }

    /// The one after this entry.
    pub fn next(&self, place: usize) -> Option<usize> {
        entry(self.next[place])
    }

    fn list(&self, hash: FlowHash) -> usize {
        hash.first(self.first.len().wrapping_sub(1))
    }

    fn unlink(&mut self, place: usize, list: usize) {
        let after = self.next[place];
        if self.first[list] == place as u32 {
            self.first[list] = after;
            return;
        }
        let mut at = entry(self.first[list]);
        while let Some(before) = at {
            at = self.next(before);
            if at == Some(place) {
                self.next[before] = after;
                return;
            }
        }
    }
}

/// Whether the wire shows another flow than the states of the second pass know.
fn is_listed<A>(translation: &Option<FlowTranslation<A>>) -> bool {
    translation.as_ref().is_some_and(|translation| translation.destination)
}

fn entry(place: u32) -> Option<usize> {
    (place != END).then_some(place as usize)
}

#[cfg(test)]
mod tests {
    use super::super::addresses::InetAddresses;
    use super::super::simd::FlowIsa;
    use super::*;

    #[test]
    fn entries_are_listed_by_what_they_are_between_both_passes() {
        let to = WireFlow::new(InetAddresses::default(), [0; 4], 17, 1);
        let translation = |ends| Some(FlowTranslation::new(&to, to, ends));
        let translated = translation([true, false]);
        let mut list = FlowTranslations::<InetAddresses>::new(16);
        let hash = |number: u8| {
            let flow = WireFlow::new(InetAddresses::from_wire([number; 8]), [0; 4], 17, 0);
            super::super::cache::FlowCache::new(16, [1, 2, 3, 4], FlowIsa::best()).hash(&flow)
        };
        let of = |list: &FlowTranslations<_>, hash| {
            let mut all: Vec<_> =
                std::iter::successors(list.first(hash), |place| list.next(*place)).collect();
            all.sort_unstable();
            all
        };
        let (a, b) = (hash(1), hash(2));
        assert_ne!(a.first(15), b.first(15));
        for place in [3, 5, 9] {
            list.set(place, translated, [a, a]);
        }
        assert_eq!((of(&list, a), of(&list, b)), (vec![3, 5, 9], vec![]));
        list.set(5, translated, [a, b]);
        assert_eq!((of(&list, a), of(&list, b)), (vec![3, 9], vec![5]));
        list.set(9, None, [a, a]);
        let source = translation([false, true]);
        list.set(3, source, [a, a]);
        assert_eq!((of(&list, a), list.get(3), list.get(9)), (vec![], source.as_ref(), None));
    }
}
