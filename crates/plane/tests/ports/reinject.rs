//! Frames for the kernel wait in a ring, of which packets that a sender can have many of leave a part free.

use fullview_plane::port::classify::Trailer;
use fullview_plane::port::reinject::ReinjectThread;
use fullview_testnet::may_load_programs;

use crate::packets::udp;

#[test]
fn a_busy_ring_has_room_for_frames_that_are_not_of_a_flood() {
    if !may_load_programs() {
        return;
    }
    let (thread, mut reinjectors) = ReinjectThread::start(Trailer::default(), 1).unwrap();
    // From now on no frame leaves the ring.
    drop(thread);
    let (ring, frame) = (&mut reinjectors[0], udp("203.0.113.1", 64, 18));
    let mut flood = 0;
    while !ring.is_busy() {
        assert!(ring.queue(1, &frame));
        flood += 1;
    }
    let others = (0..1000).take_while(|_| ring.queue(1, &frame)).count();
    assert_eq!((flood, others), (384, 128));
}
