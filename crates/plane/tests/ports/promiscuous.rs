//! A card with a filter of addresses: a macvlan, which passes on what is for it and for the groups that the kernel joined.

use fullview_plane::burst::Arena;
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::promiscuous::PromiscuousMode;
use fullview_testnet::current::{cable, ip, wait_until_up};
use fullview_testnet::in_namespace;

use crate::conformance::{Pool, SLOTS, carry, frame};

/// The group of the neighbours whose addresses end with 00:0001.
const SOLICITED_NODE: [u8; 6] = [0x33, 0x33, 0xff, 0, 0, 1];

#[test]
fn a_card_passes_on_all_frames_as_long_as_promiscuous_mode_lasts() {
    in_namespace(|| {
        cable("far", "low", 1514);
        ip("link add link low name card type macvlan mode bridge");
        ip("link set card up");
        wait_until_up(&["card"]);
        let is_promiscuous = || ip("-d link show card").contains("promiscuity 1");
        assert!(!is_promiscuous());
        let mode = PromiscuousMode::of(&Link::named("card").unwrap()).unwrap();
        assert!(is_promiscuous());
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut far = PacketPort::open(0, "far", PacketOptions::default()).unwrap();
        let mut card = PacketPort::open(1, "card", PacketOptions::default()).unwrap();
        let mut frames = [frame(1, 60)];
        frames[0][..6].copy_from_slice(&SOLICITED_NODE);
        assert_eq!(carry(&mut far, &mut card, &mut pool, &frames), frames);
        drop(mode);
        assert!(!is_promiscuous());
    });
}
