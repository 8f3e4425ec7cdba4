//! A forwarding path before it has a bed, and what is said of it afterwards.

use std::sync::Arc;

use fullview_lab::{Findings, Validity};
use fullview_plane::forward::{Forwarder, Stage};
use fullview_table::NextHop;

use crate::error::{BenchError, check};
use crate::settings::LoopStage;
use crate::subject::family::BenchFamily;
use crate::traffic::flow::FlowSet;
use crate::traffic::load::{LoadConfig, LoadResult};

/// A router that is compiled, and the packets for it.
pub struct ForwardPath<A: BenchFamily> {
    pub config: LoadConfig,
    pub flows: Arc<FlowSet<A>>,
    pub router: Forwarder,
    pub through: Option<LoopStage>,
    pub events: Vec<String>,
}

pub fn last_stage(through: LoopStage) -> Stage {
    match through {
        LoopStage::Parse => Stage::Parse,
        LoopStage::Lookup => Stage::Lookup,
        LoopStage::Rewrite => Stage::Rewrite,
    }
}

/// What a path or a bed counted, and the reasons against it.
pub fn findings(result: &LoadResult, events: &[String]) -> Findings {
    let received = &result.received;
    let counts = [
        ("sent", result.sent),
        ("flows", received.distinct_flows),
        ("received", received.packets),
        ("dropped", result.dropped),
        ("lost", result.lost()),
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
