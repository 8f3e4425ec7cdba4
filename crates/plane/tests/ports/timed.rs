//! The capture of selected frames with their times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fullview_plane::burst::Arena;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::timed::{KEPT, TimedCapture, WordFilter};
use fullview_testnet::current::cable;
use fullview_testnet::in_namespace;

use crate::conformance::{Pool, SLOTS, frame, send};

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn marked(number: u8) -> Vec<u8> {
    let mut frame = frame(number.into(), 1514);
    frame[42..46].copy_from_slice(&0x1234_5678u32.to_be_bytes());
    frame[46] = number;
    frame
}

#[test]
fn a_capture_has_the_frames_with_the_word_and_their_times() {
    in_namespace(|| {
        cable("left", "right", 1514);
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut left = PacketPort::open(0, "left", PacketOptions::default()).unwrap();
        let filter = WordFilter { offset: 42, word: 0x1234_5678 };
        let mut capture = TimedCapture::open("right", 8, filter).unwrap();
        let before = now();
        let sent = [marked(1), frame(2, 1514), frame(2, 20), marked(3)];
        let mut burst = pool.take(sent.len());
        burst.iter_mut().zip(&sent).for_each(|(slot, frame)| assert!(slot.set_frame(frame)));
        send(&mut left, &mut burst);
        let mut frames = Vec::new();
        while frames.len() < 2 {
            frames.extend(capture.next_frame());
            assert!(now() < before + Duration::from_secs(30), "a frame with the word is missing");
        }
        let after = now();
        assert!(frames.is_sorted_by_key(|(received, _)| *received));
        assert!(frames.iter().all(|(received, _)| (before..=after).contains(received)), "{frames:?}");
        let kept: Vec<&[u8]> = frames.iter().map(|(_, bytes)| &bytes[..]).collect();
        assert_eq!(kept, [&marked(1)[..KEPT], &marked(3)[..KEPT]]);
        assert_eq!((capture.next_frame(), capture.overruns().unwrap()), (None, 0));
    });
}
