//! A forwarding path before it has a bed, and what is said of it afterwards.

use std::sync::Arc;

use fullview_lab::{Findings, Slice, Validity};
use fullview_plane::forward::{Forwarder, Stage};
use fullview_table::NextHop;

use crate::error::{BenchError, check};
use crate::settings::LoopStage;
use crate::subject::family::BenchFamily;
use crate::traffic::flow::FlowSet;
use crate::traffic::frame::FrameSize;
use crate::traffic::load::{LoadConfig, LoadResult};

/// A router that is compiled, and the packets for it.
pub struct ForwardPath<A: BenchFamily> {
    pub config: LoadConfig,
    pub flows: Arc<FlowSet<A>>,
    pub router: Forwarder,
    pub through: Option<LoopStage>,
    pub events: Vec<String>,
}

/// What a control has in common with its members.
#[derive(Clone, Copy, PartialEq)]
pub struct BedKey {
    flows: usize,
    size: FrameSize,
    burst: usize,
    packets: usize,
    check_one_in: u32,
    pps: Option<f64>,
    ports: usize,
}

impl BedKey {
    /// The bed of a member with these packets, which leave by so many ports.
    pub fn of<A>(config: &LoadConfig, flows: &FlowSet<A>, ports: usize) -> Self {
        let LoadConfig { size, burst, packets, check_one_in, pps, .. } = *config;
        let flows = std::ptr::from_ref(flows).addr();
        BedKey { flows, size, burst, packets, check_one_in: check_one_in.get(), pps, ports }
    }
}

pub fn last_stage(through: LoopStage) -> Stage {
    match through {
        LoopStage::Parse => Stage::Parse,
        LoopStage::Lookup => Stage::Lookup,
        LoopStage::Rewrite => Stage::Rewrite,
    }
}

/// What a path or a bed counted, and the reasons against it. Of an offered load, what was due and not sent is lost like
/// what did not come out; only the latter is wrong.
pub fn findings(result: &LoadResult, events: &[String]) -> Findings {
    let received = &result.received;
    let unsent = result.offered.map_or(0, |offered| offered.saturating_sub(result.sent));
    let counts = [
        ("sent", result.sent),
        ("flows", received.distinct_flows),
        ("received", received.packets),
        ("dropped", result.dropped),
        ("lost", result.lost() + unsent),
        ("checked", received.checked),
        ("wrong", received.wrong),
        ("duplicates", received.order.duplicates),
        ("reordered", received.order.reordered),
    ];
    let offered = result.offered.map(|offered| ("offered", offered));
    let counts = counts.into_iter().chain(offered);
    let misrouted = received.wrong > 0 || result.lost() > 0 || received.order.duplicates > 0;
    Findings {
        counters: counts.map(|(name, count)| (name.into(), count as f64)).collect(),
        reasons: misrouted.then_some(Validity::Misrouted).into_iter().collect(),
        events: events.to_vec(),
    }
}

/// Whether a control sends what is due, slice by slice. A disturbance puts single slices behind; a generator that
/// is too slow is behind in most of them.
#[derive(Default)]
pub struct OfferedLoad {
    slices: u64,
    behind: u64,
}

impl OfferedLoad {
    /// The smallest part of what is due that a control has to send.
    const ENOUGH: f64 = 0.999;

    pub fn count(&mut self, slice: &Slice) {
        self.slices += 1;
        self.behind += u64::from((slice.counted as f64) < Self::ENOUGH * slice.offered as f64);
    }

    pub fn reason(&self) -> Option<Validity> {
        (2 * self.behind > self.slices).then_some(Validity::GeneratorLimited)
    }
}

/// Checks that every packet with a route left by its next hop, every other was dropped, none was lost and every flow
/// arrived.
pub fn came_out_right<A: BenchFamily>(flows: &FlowSet<A>, result: &LoadResult) -> Result<(), BenchError> {
    let unrouted = |id: u32| flows.next_hops().get(id as usize) == Some(&NextHop::NONE);
    let expected = flows.packets().iter().filter(|flow| unrouted(flow.id)).count() as u64;
    let routed = flows.next_hops().iter().filter(|hop| hop.is_some()).count() as u64;
    let received = &result.received;
    if let Some(first) = received.first_wrong {
        return Err(BenchError::Wrong(format!(
            "{} of {} packets came out wrong; {first}",
            received.wrong, result.sent
        )));
    }
    check(result.lost() == 0, || format!("{} of {} packets were lost", result.lost(), result.sent))?;
    check(result.dropped == expected, || {
        format!("{} packets dropped, {expected} have no route", result.dropped)
    })?;
    check(received.distinct_flows == routed, || {
        format!("{} flows came out, {routed} have a route", received.distinct_flows)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::sink::Tally;

    #[test]
    fn a_generator_is_too_slow_if_most_slices_of_the_control_are_behind() {
        let mut load = OfferedLoad::default();
        let slice = |counted| Slice { counted, offered: 10_000, ..Slice::default() };
        [10_000, 9_990, 9_989, 0].into_iter().for_each(|counted| load.count(&slice(counted)));
        assert_eq!(load.reason(), None);
        load.count(&slice(9_000));
        assert_eq!(load.reason(), Some(Validity::GeneratorLimited));
    }

    #[test]
    fn what_a_slow_router_left_unsent_is_lost_but_not_misrouted() {
        let received = Tally { packets: 90, ..Tally::default() };
        let result =
            LoadResult { sent: 100, dropped: 10, offered: Some(400), received, ..LoadResult::default() };
        let found = findings(&result, &[]);
        assert_eq!((found.counters["offered"], found.counters["lost"]), (400.0, 300.0));
        assert!(found.reasons.is_empty());
        let vanished = findings(&LoadResult { dropped: 9, ..result }, &[]);
        assert_eq!((vanished.counters["lost"], &*vanished.reasons), (301.0, &[Validity::Misrouted][..]));
    }
}
