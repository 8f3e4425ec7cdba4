use super::build::{Classifier, Index};
use super::dimension::Dimension;
use super::rows::RowStart;
use crate::packet::Packet;

/// So few rules are tested faster than the packet is looked up in another dimension.
const FEW: u32 = 2;
/// Words of the summary that are kept: those of 16,384 rules.
const KEPT: usize = 4;

/// The candidates of one packet.
pub struct Walk<'a> {
    classifier: &'a Classifier,
    rows: [RowStart; Dimension::COUNT],
    /// The first dimensions, in which the packet was looked up: the others would not exclude much.
    known: usize,
    /// The first words of the summary over these dimensions.
    summaries: [u64; KEPT],
}

impl<'a> Walk<'a> {
    /// Looks up the packet in one dimension after the other, until few candidates are left.
    #[inline]
    pub fn new(classifier: &'a Classifier, packet: &Packet) -> Self {
        let mut walk = Walk { classifier, rows: [0; Dimension::COUNT], known: 0, summaries: [!0; KEPT] };
        let summaries = classifier.summaries();
        for index in &classifier.indexes {
            let row = index.row(packet);
            for (at, summary) in walk.summaries.iter_mut().enumerate().take(summaries) {
                *summary &= index.rows.summary(row, at);
            }
            walk.rows[walk.known] = row;
            walk.known += 1;
            if summaries <= KEPT && walk.has_few(summaries) {
                break;
            }
        }
        walk
    }

    /// Whether few candidates are left; all words of the summary are kept.
    #[inline(always)]
    fn has_few(&self, summaries: usize) -> bool {
        let words: u32 = self.summaries[..summaries].iter().map(|summary| summary.count_ones()).sum();
        if words > FEW {
            return false;
        }
        let candidates = |at: usize| {
            let mut summary = self.summaries[at];
            let mut found = 0;
            while summary != 0 {
                found += self.word(at * 64 + summary.trailing_zeros() as usize).count_ones();
                summary &= summary - 1;
            }
            found
        };
        (0..summaries).map(candidates).sum::<u32>() <= FEW
    }

    /// The first candidate from `from` on.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        let words = self.classifier.rules.div_ceil(64);
        let (mut at, mut above) = (from / 64, !0 << (from % 64));
        while at < words {
            let bits = if self.summary(at / 64) >> (at % 64) & 1 == 1 { self.word(at) & above } else { 0 };
            if bits != 0 {
                // Without any index all bits are set, also those behind the last rule.
                return Some(at * 64 + bits.trailing_zeros() as usize)
                    .filter(|rule| *rule < self.classifier.rules);
            }
            above = !0;
            at = self.word_after(at, words);
        }
        None
    }

    /// The last candidate before `before`.
    #[inline]
    pub fn previous(&self, before: usize) -> Option<usize> {
        let last = before.checked_sub(1)?;
        let (mut at, mut below) = (last / 64, !0 >> (63 - last % 64));
        loop {
            let bits = self.word(at) & below;
            if bits != 0 {
                return Some(at * 64 + 63 - bits.leading_zeros() as usize);
            }
            below = !0;
            at = self.word_before(at)?;
        }
    }

    /// The next word after `at` in which all dimensions have bits; `words` if there is none.
    #[inline(always)]
    fn word_after(&self, at: usize, words: usize) -> usize {
        let (mut summary, mut above) = ((at + 1) / 64, !0 << ((at + 1) % 64));
        while summary * 64 < words {
            let bits = self.summary(summary) & above;
            if bits != 0 {
                return summary * 64 + bits.trailing_zeros() as usize;
            }
            above = !0;
            summary += 1;
        }
        words
    }

    #[inline(always)]
    fn word_before(&self, at: usize) -> Option<usize> {
        let last = at.checked_sub(1)?;
        let (mut summary, mut below) = (last / 64, !0 >> (63 - last % 64));
        loop {
            let bits = self.summary(summary) & below;
            if bits != 0 {
                return Some(summary * 64 + 63 - bits.leading_zeros() as usize);
            }
            below = !0;
            summary = summary.checked_sub(1)?;
        }
    }

    /// One bit for each word in which every known dimension has some bit.
    #[inline(always)]
    fn summary(&self, at: usize) -> u64 {
        match self.summaries.get(at) {
            Some(kept) => *kept,
            None => self.all(|index, row| index.rows.summary(row, at)),
        }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        self.all(|index, row| index.rows.word(row, at))
    }

    /// The bits that all known dimensions have. Often the first ones have none in common.
    #[inline(always)]
    fn all(&self, bits: impl Fn(&Index, RowStart) -> u64) -> u64 {
        let mut all = !0;
        for (index, row) in self.classifier.indexes.iter().zip(&self.rows[..self.known]) {
            all &= bits(index, *row);
            if all == 0 {
                break;
            }
        }
        all
    }
}
