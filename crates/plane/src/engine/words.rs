//! Parts of the words that the program reads, in memory order.

/// Packs half words in memory order, two per word.
pub(super) fn pairs(halves: &[u16]) -> Vec<u32> {
    halves.chunks(2).map(|pair| half_words(pair[0], pair.get(1).copied().unwrap_or(0))).collect()
}

pub(super) fn halves_of(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

pub(super) fn half_words(first: u16, second: u16) -> u32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

pub(super) fn halves(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// Four bytes.
pub(super) fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
