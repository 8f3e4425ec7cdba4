//! The stamp of a probe: when the schedule wanted it sent. Even the smallest frame has room for it.

use std::time::Duration;

use fullview_plane::burst::Slot;
use fullview_plane::port::timed::{KEPT, WordFilter};

use super::frame::HEADERS;

/// The first word of a probe's payload; that of other packets is zero.
const WORD: u32 = 0x7072_6f62;
const TIME: usize = HEADERS + 4;
const END: usize = TIME + 8;
const _: () = assert!(END <= 60 && END <= KEPT);

/// The packets that have a stamp.
pub const PROBES: WordFilter = WordFilter { offset: HEADERS as u32, word: WORD };

/// Writes a stamp, in nanoseconds since 1970.
pub fn write(slot: &mut Slot, due: Duration) {
    let bytes = slot.head_mut();
    bytes[HEADERS..TIME].copy_from_slice(&WORD.to_be_bytes());
    bytes[TIME..END].copy_from_slice(&(due.as_nanos() as u64).to_be_bytes());
}

/// Removes the stamp of the slot's packet before.
pub fn clear(slot: &mut Slot) {
    slot.head_mut()[HEADERS..END].fill(0);
}

/// The time that is written in a probe.
pub fn read(frame: &[u8; KEPT]) -> Duration {
    let mut nanos = [0; 8];
    nanos.copy_from_slice(&frame[TIME..END]);
    Duration::from_nanos(u64::from_be_bytes(nanos))
}

#[cfg(test)]
mod tests {
    use fullview_plane::burst::Arena;

    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_removed() {
        let mut arena = Arena::new(1);
        let slot = arena.packets().next().unwrap();
        slot.set_frame(&[0; 60]);
        let due = Duration::new(1_700_000_000, 123_456_789);
        write(slot, due);
        assert_eq!(read(slot.head()), due);
        assert_eq!(slot.frame()[42..46], PROBES.word.to_be_bytes());
        clear(slot);
        assert_eq!(slot.frame(), [0; 60]);
    }
}
