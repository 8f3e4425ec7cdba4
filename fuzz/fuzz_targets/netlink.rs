//! Any bytes in place of what the kernel sends over netlink: events or errors, and a mirror that applies the events.
#![no_main]

use std::time::Duration;

use fullview_router::mirror::Mirror;
use fullview_router::netlink::decode::{self, Messages};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut mirror = Mirror::new(Duration::ZERO, vec!["eth1".into(), "eth2".into()], Default::default());
    let events = Messages(bytes).filter_map(|message| decode::event(&message).ok().flatten());
    for (at, event) in events.enumerate() {
        mirror.apply(event);
        if at % 4 == 3 {
            mirror.commit(Duration::from_millis(at as u64));
        }
    }
    mirror.commit(Duration::from_secs(10));
    mirror.tick(Duration::from_secs(20));
});
