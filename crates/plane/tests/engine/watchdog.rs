//! The program passes every packet to the kernel while the process does not report.

use fullview_plane::engine::{ReportTime, XdpReason};
use fullview_table::{NextHop, Prefix, Rib};
use fullview_testnet::eventually;

use super::dut::{Became, at_each_hook, count, engine, plan, run, tables};
use super::frames::frame;

#[test]
fn packets_are_passed_after_a_second_without_a_report() {
    at_each_hook(|hook| {
        let mut rib = Rib::default();
        rib.announce(Prefix::default_route(), NextHop(1));
        let mut engine = engine(&plan(1), tables(&rib, &Rib::default()));
        let sent = frame(0xc000_0201u32, 0xc612_0001);
        let early = ReportTime::now();
        engine.report(early);
        assert!(eventually(|| run(&hook.program(&mut engine), &sent) == Became::Passed(sent.clone())));
        assert!(count(&engine).of(XdpReason::RouterStalled) > 0);
        // An update of the tables says nothing about the time until which they are complete.
        engine.publish(&plan(1), vec![tables(&rib, &Rib::default())]).unwrap();
        engine.report(early);
        assert_eq!(run(&hook.program(&mut engine), &sent), Became::Passed(sent.clone()));
        let is_forwarded = |became| matches!(became, Became::Forwarded(_));
        assert!(eventually(|| {
            engine.report(ReportTime::now());
            is_forwarded(run(&hook.program(&mut engine), &sent))
        }));
    });
}
