//! Whole bursts through the parsers of all instruction sets: the same packets, verdicts and counts.

use fullview_plane::forward::{Forwarder, ParserIsa};
use fullview_plane::view::{View, ViewReader};
use proptest::prelude::*;
use proptest::sample::select;

use crate::frames::*;
use crate::router;

/// Some packets that follow each other.
#[derive(Clone, Debug)]
struct Run {
    port: u16,
    frame: Vec<u8>,
    count: usize,
    /// A bit that is changed in the last one.
    fault: Option<(usize, u8)>,
}

impl Run {
    fn frames(&self) -> impl Iterator<Item = (u16, Vec<u8>)> {
        let mut frames = vec![(self.port, self.frame.clone()); self.count];
        if let (Some((at, bits)), Some((_, last))) = (self.fault, frames.last_mut()) {
            last[at] ^= bits;
        }
        frames.into_iter()
    }
}

fn run_of_packets() -> impl Strategy<Value = Run> {
    let frames = vec![
        good(),
        good6(),
        inet(SRC, "198.18.100.1", 9),
        inet(SRC, "198.18.10.1", 1),
        inet6(SRC6, "2001:2:0:20::1", 2),
        inet_with(SRC, DST, 64, &[1, 1, 1, 0]),
        tagged(good(), 20),
        tagged(good6(), 30),
        cut(good(), 33),
        cut(good6(), 53),
    ];
    // Of the good ones more often.
    let frame = prop_oneof![2 => select(frames[..2].to_vec()), 1 => select(frames)];
    let fault = prop::option::weighted(0.3, (0..30_usize, any::<u8>()));
    (0..3_u16, frame, 1..12_usize, fault).prop_map(|(port, frame, count, fault)| Run {
        port,
        frame,
        count,
        fault,
    })
}

proptest! {
    #[test]
    fn all_parsers_forward_the_same_packets(runs in prop::collection::vec(run_of_packets(), 1..20)) {
        let frames: Vec<_> = runs.iter().flat_map(Run::frames).collect();
        let results = ParserIsa::available().into_iter().map(|isa| {
            let mut forwarder = Forwarder::new(ViewReader::fixed(View::new(router::parts()).unwrap()));
            forwarder.use_parser(isa);
            let fates = run(&mut forwarder, &frames);
            (fates, format!("{:?}", forwarder.counters()))
        });
        let results: Vec<_> = results.collect();
        for result in &results[1..] {
            prop_assert_eq!(result, &results[0]);
        }
    }
}
