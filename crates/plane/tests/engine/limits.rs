//! The program drops packets that only cost the kernel time when there are too many of them, and no others.

use std::num::NonZeroU32;

use fullview_plane::engine::{Engine, XdpReason};
use fullview_plane::verdict::LimitedReason;

use super::dut::{Became, Hook, at_each_hook, count, run, since};
use super::passes::{exceptional_engine, exceptions};

/// Far more packets than the limit lets pass while they are sent.
const PACKETS: u64 = 200;

/// The reason of packets beyond the limit that packets of this reason have, if they have one.
fn limited(reason: XdpReason) -> Option<XdpReason> {
    let is_of = |limited: &XdpReason| limited.exceeds().and_then(XdpReason::within) == Some(reason);
    XdpReason::ALL.into_iter().find(is_of)
}

/// Runs the program that often; returns how many of the frames it dropped. It passes all others as they are.
fn dropped(engine: &mut Engine, hook: Hook, frame: &[u8]) -> u64 {
    let program = hook.program(engine);
    let became = (0..PACKETS).map(|_| run(&program, frame));
    let dropped = became.filter(|became| match became {
        Became::Passed(passed) => {
            assert_eq!(passed, frame);
            false
        }
        became => *became == Became::Dropped,
    });
    dropped.count() as u64
}

#[test]
fn only_packets_of_limited_reasons_are_dropped_and_each_is_counted() {
    at_each_hook(|hook| {
        let mut engine = exceptional_engine();
        LimitedReason::ALL.iter().for_each(|reason| engine.limit(*reason, NonZeroU32::MIN).unwrap());
        // A test run makes no skb of a frame that ends before its headers do.
        let is_run = |reason| hook != Hook::Tcx || reason != XdpReason::TooShort;
        let mut seen = Vec::new();
        for (reason, frame) in exceptions().into_iter().filter(|(reason, _)| is_run(*reason)) {
            let before = count(&engine);
            let dropped = dropped(&mut engine, hook, &frame);
            let counted = since(&before, &count(&engine));
            let Some(limited) = limited(reason) else {
                assert_eq!((dropped, counted), (0, vec![(reason, PACKETS)]));
                continue;
            };
            assert!(dropped > 0, "{reason}");
            let passed = [(reason, PACKETS - dropped)].into_iter().filter(|(_, count)| *count > 0);
            assert_eq!(counted, passed.chain([(limited, dropped)]).collect::<Vec<_>>());
            seen.push(limited);
        }
        seen.dedup();
        let all = [XdpReason::TtlExpiredLimited, XdpReason::NoRouteLimited, XdpReason::DiscardedLimited];
        assert_eq!(seen, all);
    });
}

#[test]
fn a_limit_lets_packets_pass_up_to_its_rate() {
    at_each_hook(|hook| {
        let mut engine = exceptional_engine();
        let generous = NonZeroU32::new(PACKETS as u32).unwrap();
        LimitedReason::ALL.iter().for_each(|reason| engine.limit(*reason, generous).unwrap());
        for reason in [XdpReason::NoRoute, XdpReason::Discarded] {
            let frame = exceptions().into_iter().find(|(of, _)| *of == reason).unwrap().1;
            assert_eq!(dropped(&mut engine, hook, &frame), 0, "{reason}");
        }
    });
}
