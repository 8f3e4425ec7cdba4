//! Rows of bits, of which only the words that are not zero are stored.

use std::collections::HashMap;

/// Where a row starts in its arena.
pub(super) type RowStart = u32;

/// All rows of a dimension. A row is its summary, one bit for each word, and then the words that are not zero.
#[derive(Clone, Debug)]
pub(super) struct RowArena {
    words: Vec<u64>,
    /// How many words a summary has.
    summary: usize,
}

/// The rows of a dimension need more memory than they may.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// Makes an arena; equal rows are stored once.
pub(super) struct RowBuilder {
    arena: RowArena,
    known: HashMap<Vec<u32>, RowStart>,
    stored: usize,
}

/// 64 MiB, for a dimension in which very many ranges overlap.
const MOST_WORDS: usize = 8 << 20;

impl RowBuilder {
    /// A builder of rows with a bit for each of so many rules.
    pub fn new(rules: usize) -> Self {
        let arena = RowArena { words: Vec::new(), summary: rules.div_ceil(64).div_ceil(64) };
        RowBuilder { arena, known: HashMap::new(), stored: 0 }
    }

    /// The row with the bits of these rules, which ascend.
    pub fn row(&mut self, rules: &[u32]) -> Result<RowStart, TooLarge> {
        if let Some(start) = self.known.get(rules) {
            return Ok(*start);
        }
        let start = self.arena.words.len();
        self.stored += rules.len() / 2;
        if start + self.stored + self.arena.summary + rules.len() > MOST_WORDS {
            return Err(TooLarge);
        }
        self.arena.words.resize(start + self.arena.summary, 0);
        let mut last = None;
        for rule in rules {
            let word = (rule / 64) as usize;
            if last.replace(word) != Some(word) {
                self.arena.words[start + word / 64] |= 1 << (word % 64);
                self.arena.words.push(0);
            }
            if let Some(bits) = self.arena.words.last_mut() {
                *bits |= 1 << (rule % 64);
            }
        }
        self.known.insert(rules.to_vec(), start as RowStart);
        Ok(start as RowStart)
    }

    pub fn finish(self) -> RowArena {
        self.arena
    }
}

impl RowArena {
    /// A word of a row's summary.
    #[inline(always)]
    pub fn summary(&self, row: RowStart, at: usize) -> u64 {
        self.words[row as usize + at]
    }

    /// A word of a row.
    #[inline(always)]
    pub fn word(&self, row: RowStart, at: usize) -> u64 {
        let (own, bit) = (at / 64, at % 64);
        let start = row as usize;
        let summary = self.words[start + own];
        if summary >> bit & 1 == 0 {
            return 0;
        }
        let before: u32 = self.words[start..start + own].iter().map(|word| word.count_ones()).sum();
        let within = (summary & ((1 << bit) - 1)).count_ones();
        self.words[start + self.summary + (before + within) as usize]
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}
