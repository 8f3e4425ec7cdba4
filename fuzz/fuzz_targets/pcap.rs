//! Any bytes as a capture: an error or frames that fit a slot, never a panic, never an endless loop.
#![no_main]

use std::path::Path;

use fullview_plane::burst::{Arena, FRAME_CAPACITY};
use fullview_plane::port::pcap::CaptureReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = CaptureReader::new(Path::new("input"), bytes) else { return };
    let mut arena = Arena::new(1);
    for slot in arena.packets() {
        let mut frames = 0;
        while let Ok(Some(_)) = reader.read_into(slot) {
            assert!(slot.frame_len() <= FRAME_CAPACITY);
            frames += 1;
            assert!(frames <= bytes.len(), "more frames than bytes");
        }
        assert!(reader.is_finished());
    }
});
