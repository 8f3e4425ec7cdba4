//! Cache lines of sorted keys, which a vector compares with one key at once.

use std::sync::atomic::AtomicU32;

/// A cache line that begins with sorted numbers, the last key of each of its parts.
///
/// # Safety
///
/// The type has 64 bytes, is aligned to 64, and begins with the numbers that [`SearchLine::lasts`] gives, at most 16.
pub(crate) unsafe trait SearchLine {
    /// The count of numbers searched.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    const LASTS: usize;
    /// The numbers searched.
    fn lasts(&self) -> &[AtomicU32];
}

/// A line that also holds the place of its first child; the children lie in a row, one line each.
///
/// # Safety
///
/// An aligned 32-bit word lies at byte [`LinkedLine::FIRST`] of the line, and [`LinkedLine::child`] computes that word
/// plus 64 times `number`.
pub(crate) unsafe trait LinkedLine: SearchLine {
    /// The byte of the line at which the place of the first child stands.
    #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(dead_code))] // plain code needs none
    const FIRST: usize;
    /// The place of a child, in bytes.
    fn child(&self, number: u32) -> u32;
}
