//! Rows of bits, in one of two forms, and lists of rules where a row has few.
//!
//! A *full* row has a word for each 64 rules, and the bits of the rules that do not ask about the dimension are in each.
//! Where that would take too much memory, a *sparse* row has only the words that are not zero, and those rules have a row of
//! their own. Both begin with a summary, one bit for each word that is not zero.

use std::collections::HashMap;

/// The number of a row in the order of their making.
pub(super) type RowNumber = u32;
/// Where a row starts in its arena.
pub(super) type RowStart = u32;
/// In what [`RowBuilder::finish`] returns for a row: it has so few rules that to test them takes less than to look up the packet
/// in another dimension. The other bits are where [`RowArena::few`] has them.
pub(super) const HAS_FEW: RowStart = 1 << 31;
/// So few rules, in their order; the places of those that are missing have the largest number.
pub(super) type FewRules = [u32; FEW];
const FEW: usize = 2;

/// All rows of a dimension.
#[derive(Clone, Debug)]
pub(super) struct RowArena {
    words: Vec<u64>,
    /// How many words a summary has.
    summary: usize,
    /// In the sparse form: the summary of the rules that do not ask, and then all their words.
    indifferent: Option<Box<[u64]>>,
    few: Vec<FewRules>,
}

/// The rows of a dimension need more memory than they may.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// Makes an arena; equal rows are stored once.
pub(super) struct RowBuilder {
    /// The rules of each row.
    rows: Vec<Vec<u32>>,
    known: HashMap<Vec<u32>, RowNumber>,
    /// How many words all rules need.
    words: usize,
    stored: usize,
}

/// 64 MiB, for a dimension in which very many ranges overlap.
const MOST_WORDS: usize = 8 << 20;
/// 512 KiB: full rows of a dimension stay in the nearer caches.
const MOST_FULL_WORDS: usize = 64 << 10;

impl RowBuilder {
    /// A builder of rows with a bit for each of so many rules.
    pub fn new(rules: usize) -> Self {
        RowBuilder { rows: Vec::new(), known: HashMap::new(), words: rules.div_ceil(64), stored: 0 }
    }

    /// The row with the bits of these rules, which ascend.
    pub fn row(&mut self, rules: &[u32]) -> Result<RowNumber, TooLarge> {
        if let Some(number) = self.known.get(rules) {
            return Ok(*number);
        }
        self.stored += rules.len() + 2 * self.summary();
        if self.stored > MOST_WORDS {
            return Err(TooLarge);
        }
        let number = self.rows.len() as RowNumber;
        self.rows.push(rules.to_vec());
        self.known.insert(rules.to_vec(), number);
        Ok(number)
    }

    /// The arena, and where in it each row starts, with [`HAS_FEW`]. `indifferent` are the rules that do not ask about the dimension.
    pub fn finish(self, indifferent: &[u32]) -> (RowArena, Vec<RowStart>) {
        let is_many = |rules: &&Vec<u32>| rules.len() + indifferent.len() > FEW;
        let many = self.rows.iter().filter(is_many).count();
        let is_full = many * (self.summary() + self.words) <= MOST_FULL_WORDS;
        let mut arena = self.empty_arena(is_full, indifferent);
        let mut put = |rules| {
            if is_many(&rules) {
                arena.put(rules, indifferent, self.words)
            } else {
                arena.put_few(rules, indifferent)
            }
        };
        let starts = self.rows.iter().map(&mut put).collect();
        (arena, starts)
    }

    fn empty_arena(&self, is_full: bool, indifferent: &[u32]) -> RowArena {
        let summary = self.summary();
        let others = (!is_full).then(|| full(indifferent.iter(), self.words, summary).into());
        RowArena { words: Vec::new(), summary, indifferent: others, few: Vec::new() }
    }

    fn summary(&self) -> usize {
        self.words.div_ceil(64)
    }
}

/// Summary and all words.
fn full<'r>(rules: impl Iterator<Item = &'r u32>, words: usize, summary: usize) -> Vec<u64> {
    let mut row = vec![0; summary + words];
    for rule in rules {
        let word = (rule / 64) as usize;
        row[word / 64] |= 1 << (word % 64);
        row[summary + word] |= 1 << (rule % 64);
    }
    row
}

/// For each word of the summary this word and how many words of the row are before its; then the words.
fn sparse(rules: &[u32], summary: usize) -> Vec<u64> {
    let (mut row, mut last) = (vec![0_u64; 2 * summary], None);
    for rule in rules {
        let word = (rule / 64) as usize;
        if last.replace(word) != Some(word) {
            row[2 * (word / 64)] |= 1 << (word % 64);
            row.push(0);
        }
        if let Some(bits) = row.last_mut() {
            *bits |= 1 << (rule % 64);
        }
    }
    for at in 1..summary {
        row[2 * at + 1] = row[2 * at - 1] + u64::from(row[2 * at - 2].count_ones());
    }
    row
}

impl RowArena {
    /// Adds a row of bits, and returns where it starts.
    fn put(&mut self, rules: &[u32], indifferent: &[u32], words: usize) -> RowStart {
        let start = self.words.len() as RowStart;
        self.words.extend(match self.indifferent {
            None => full(rules.iter().chain(indifferent), words, self.summary),
            Some(_) => sparse(rules, self.summary),
        });
        start
    }

    /// Adds the rules of both lists, which are few.
    fn put_few(&mut self, rules: &[u32], indifferent: &[u32]) -> RowStart {
        let mut few = [u32::MAX; FEW];
        few.iter_mut().zip(rules.iter().chain(indifferent)).for_each(|(place, rule)| *place = *rule);
        few.sort_unstable();
        self.few.push(few);
        HAS_FEW | (self.few.len() - 1) as RowStart
    }

    /// A word of a row's summary.
    #[inline(always)]
    pub fn summary(&self, row: RowStart, at: usize) -> u64 {
        match &self.indifferent {
            None => self.words[row as usize + at],
            Some(others) => self.words[row as usize + 2 * at] | others[at],
        }
    }

    /// A word of a row.
    #[inline(always)]
    pub fn word(&self, row: RowStart, at: usize) -> u64 {
        match &self.indifferent {
            None => self.words[row as usize + self.summary + at],
            Some(others) => self.sparse_word(row, at) | others[self.summary + at],
        }
    }

    /// The rules of a row that has few.
    #[inline(always)]
    pub fn few(&self, at: RowStart) -> FewRules {
        self.few[at as usize]
    }

    #[inline(always)]
    fn sparse_word(&self, row: RowStart, at: usize) -> u64 {
        let (own, bit) = (row as usize + 2 * (at / 64), at % 64);
        let (summary, before) = (self.words[own], self.words[own + 1]);
        if summary >> bit & 1 == 0 {
            return 0;
        }
        let within = (summary & ((1 << bit) - 1)).count_ones();
        self.words[row as usize + 2 * self.summary + before as usize + within as usize]
    }

    pub fn bytes(&self) -> usize {
        let indifferent = self.indifferent.as_ref().map_or(0, |row| size_of_val(&**row));
        size_of_val(&*self.words) + indifferent + size_of_val(&*self.few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Both forms of one row, with the rules that do not ask.
    fn forms(rules: usize, row: &[u32], indifferent: &[u32]) -> [(RowArena, RowStart); 2] {
        [true, false].map(|is_full| {
            let builder = RowBuilder::new(rules);
            let mut arena = builder.empty_arena(is_full, indifferent);
            arena.put(&[], indifferent, builder.words);
            let start = arena.put(row, indifferent, builder.words);
            (arena, start)
        })
    }

    proptest! {
        #[test]
        fn both_forms_have_the_bits_of_the_rules(
            row in prop::collection::btree_set(0_u32..9000, 0..60),
            others in prop::collection::btree_set(0_u32..9000, 0..60),
        ) {
            let (of_row, of_others): (Vec<u32>, Vec<u32>) =
                (row.difference(&others).copied().collect(), others.iter().copied().collect());
            for (arena, start) in forms(9000, &of_row, &of_others) {
                for at in 0..9000_usize.div_ceil(64) {
                    let bit = |rule: &u32| u64::from(*rule as usize / 64 == at) << (rule % 64);
                    let expected = row.iter().chain(&others).map(bit).fold(0, |all, bit| all | bit);
                    prop_assert_eq!(arena.word(start, at), expected);
                    prop_assert_eq!(arena.summary(start, at / 64) >> (at % 64) & 1 == 1, expected != 0);
                }
            }
        }
    }
}
