//! The program passes packets to the kernel that would leave by a failed link.

use fullview_plane::engine::XdpReason;
use fullview_table::{NextHop, Prefix, Rib};

use super::dut::{Became, DEVICE, at_each_hook, count, engine, plan, run, tables};
use super::frames::frame;

/// A device that shares the place of the failed one.
const OTHER: u32 = DEVICE + 4096;

#[test]
fn packets_to_a_failed_link_are_passed_without_a_new_table() {
    at_each_hook(|hook| {
        let (mut rib, mut rib6) = (Rib::default(), Rib::default());
        rib.announce(Prefix::default_route(), NextHop(1));
        rib6.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan(1), tables(&rib, &rib6));
        let sent =
            [frame(0xc000_0201u32, 0xc612_0001), frame(0x2001_0db8u128 << 96 | 1, 0x2001_0002u128 << 96)];
        let failures = engine.link_failures();
        let cases =
            [(DEVICE, true, false), (OTHER, false, false), (DEVICE, false, true), (OTHER, true, true)];
        for (device, has_failed, is_forwarded) in cases {
            failures.note(device, has_failed);
            // Both generations know it.
            for _ in 0..2 {
                let program = hook.program(&mut engine);
                let became = sent.each_ref().map(|sent| run(&program, sent));
                let passed = sent.clone().map(Became::Passed);
                assert_eq!(became != passed, is_forwarded, "{device} {has_failed}: {became:?}");
                engine.publish(&plan(1), vec![tables(&rib, &rib6)]).unwrap();
            }
        }
        assert_eq!(count(&engine).of(XdpReason::LinkFailed), 8);
    });
}
