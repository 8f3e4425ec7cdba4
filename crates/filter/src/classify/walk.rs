use super::build::{Classifier, Index};
use super::dimension::Dimension;
use super::rows::{FewRules, HAS_FEW, RowStart};
use crate::packet::Packet;

/// The candidates of one packet.
pub struct Walk<'a> {
    classifier: &'a Classifier,
    rows: [RowStart; Dimension::COUNT],
    /// All candidates, if one dimension leaves few.
    few: Option<FewRules>,
}

impl<'a> Walk<'a> {
    /// Looks up the packet in one dimension after the other, until one leaves few candidates.
    #[inline]
    pub fn new(classifier: &'a Classifier, packet: &Packet) -> Self {
        let mut rows = [0; Dimension::COUNT];
        for (row, index) in rows.iter_mut().zip(&classifier.indexes) {
            *row = index.row(packet);
            if *row & HAS_FEW != 0 {
                let few = index.rows.few(*row & !HAS_FEW);
                return Walk { classifier, rows, few: Some(few) };
            }
        }
        Walk { classifier, rows, few: None }
    }

    /// The first candidate from `from` on.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        if let Some([first, second]) = self.few {
            let at = if first as usize >= from { first } else { second } as usize;
            return (from..self.classifier.rules).contains(&at).then_some(at);
        }
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
        if let Some([first, second]) = self.few {
            let at = if (second as usize) < before { second } else { first } as usize;
            return (at < before).then_some(at);
        }
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

    /// One bit for each word in which every dimension has some bit.
    #[inline(always)]
    fn summary(&self, at: usize) -> u64 {
        self.all(|index, row| index.rows.summary(row, at))
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        self.all(|index, row| index.rows.word(row, at))
    }

    /// The bits that all dimensions have. Often the first ones have none in common.
    #[inline(always)]
    fn all(&self, bits: impl Fn(&Index, RowStart) -> u64) -> u64 {
        let mut all = !0;
        for (index, row) in self.classifier.indexes.iter().zip(&self.rows) {
            all &= bits(index, *row);
            if all == 0 {
                break;
            }
        }
        all
    }
}
