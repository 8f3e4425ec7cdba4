//! The layout of `struct wishes` and `struct copy` in `bpf/observe.h`: the first in words, the second in bytes.

use crate::engine::layout::COUNTED;

/// Watches at a time.
pub const WATCHES: usize = 8;
/// Words of a key, and of its mask.
pub const KEY: usize = 12;
/// Words of a watch: a key, a mask, the fates.
pub const WATCH: usize = 2 * KEY + 2;
/// Words of the losses of an interface.
pub const LOSS: usize = 4;

/// The places of words.
pub const LONGEST_GAP: usize = 0;
pub const WATCH_COUNT: usize = 1;
pub const MISSED: usize = 2;
pub const FIRST_WATCH: usize = 4;
pub const FIRST_LOSS: usize = FIRST_WATCH + WATCHES * WATCH;
const UNUSED: usize = 812;

/// Bytes of the wishes.
pub const BYTES: usize = 4 * (FIRST_LOSS + COUNTED * LOSS + UNUSED);
const _: () = assert!(BYTES.is_multiple_of(4096));

/// Bits of the kinds of a copy.
pub const IS_SAMPLE: u8 = 1;
pub const IS_WATCHED: u8 = 2;

/// The numbers before the bytes of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyHead {
    pub at: u64,
    pub passed: u64,
    pub device: u32,
    pub length: u32,
    pub egress: u32,
    pub copied: u16,
    pub reason: u8,
    pub kinds: u8,
    pub tag_protocol: [u8; 2],
    pub tag_control: u16,
    pub segments: u32,
}

impl CopyHead {
    /// Splits a copy into its head and the bytes of the frame. `None` if it is shorter than it says.
    pub fn split(copy: &[u8]) -> Option<(CopyHead, &[u8])> {
        let mut rest = copy;
        let head = CopyHead {
            at: u64::from_ne_bytes(take(&mut rest)?),
            passed: u64::from_ne_bytes(take(&mut rest)?),
            device: u32::from_ne_bytes(take(&mut rest)?),
            length: u32::from_ne_bytes(take(&mut rest)?),
            egress: u32::from_ne_bytes(take(&mut rest)?),
            copied: u16::from_ne_bytes(take(&mut rest)?),
            reason: u8::from_ne_bytes(take(&mut rest)?),
            kinds: u8::from_ne_bytes(take(&mut rest)?),
            tag_protocol: take(&mut rest)?,
            tag_control: u16::from_ne_bytes(take(&mut rest)?),
            segments: u32::from_ne_bytes(take(&mut rest)?),
        };
        Some((head, rest.get(..usize::from(head.copied))?))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_split_where_it_says() {
        let mut copy = [0; 44];
        copy[28] = 2;
        copy[30..32].copy_from_slice(&[17, IS_WATCHED]);
        copy[40..].copy_from_slice(&[1, 2, 3, 4]);
        let (head, frame) = CopyHead::split(&copy).unwrap();
        assert_eq!((head.copied, head.reason, head.kinds), (2u16.to_le(), 17, IS_WATCHED));
        assert_eq!(frame, [1, 2]);
        assert_eq!(CopyHead::split(&copy[..41]), None);
        assert_eq!(CopyHead::split(&copy[..39]), None);
    }
}
