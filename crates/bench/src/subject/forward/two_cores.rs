//! Forwarding paths that take turns on two cores: generator and receiver on one, the router on the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullview_lab::{Findings, Slice, SliceLimits, SubjectError, Validity, Verified};
use fullview_plane::forward::Stage;

use super::one_core::StagedRouter;
use super::path::{ForwardPath, came_out_right, findings, last_stage};
use crate::error::BenchError;
use crate::probe::RoundTrip;
use crate::subject::arms::{ArmPanel, PanelArm, PanelMember};
use crate::subject::cores::Cores;
use crate::subject::family::BenchFamily;
use crate::traffic::flow::FlowSet;
use crate::traffic::load::{LoadConfig, LoadError, LoadResult, Router, Through, Unrouted, Window};
use crate::traffic::two_cores::two_cores;

/// Each slice makes its packet memory and starts its threads, which takes one or two milliseconds.
const TWO_CORE_LIMITS: SliceLimits =
    SliceLimits { shortest: Duration::from_millis(20), longest: Duration::from_millis(80) };

/// A panel of these paths.
pub(super) fn panel<A: BenchFamily>(
    paths: Vec<ForwardPath<A>>,
    cores: Cores,
) -> Result<ArmPanel<'static>, BenchError> {
    // Whether the generator keeps up is asked of the largest load, whichever member was made first.
    let load = |path: &&ForwardPath<A>| path.config.pps.unwrap_or(f64::INFINITY);
    let largest = paths.iter().max_by(|a, b| load(a).total_cmp(&load(b))).ok_or(BenchError::NoMembers)?;
    let control = TwoCoreControl {
        cores,
        before: cores.round_trip()?,
        run: CountedRun { config: largest.config.clone(), flows: Arc::clone(&largest.flows), total: None },
    };
    let paced = paths.iter().any(|path| path.config.pps.is_some());
    let members = paths.into_iter().map(|path| Box::new(TwoCoreMember::of(path)) as Box<dyn PanelMember>);
    let mut panel = ArmPanel::new(vec![Box::new(control)], members.collect(), false, TWO_CORE_LIMITS);
    panel.paced = paced;
    Ok(panel)
}

/// Runs of one router, and what they counted together.
struct CountedRun<A: BenchFamily> {
    config: LoadConfig,
    flows: Arc<FlowSet<A>>,
    total: Option<LoadResult>,
}

impl<A: BenchFamily> CountedRun<A> {
    fn slice<R: Router + Send>(
        &mut self,
        router: &mut R,
        lead_in: Duration,
        length: Duration,
    ) -> Result<Slice, LoadError> {
        let never = AtomicBool::new(false);
        let window = Window::new(lead_in, length, 1, &never);
        let result = two_cores(&self.config, &self.flows, router, &window)?;
        let time = result.elapsed;
        let counted = (result.rates.first().copied().unwrap_or_default() * time.as_secs_f64()).round() as u64;
        let due = self.config.pps.map(|pps| (pps * time.as_secs_f64()).round() as u64);
        match &mut self.total {
            None => self.total = Some(result),
            Some(total) => total.add(&result),
        }
        Ok(Slice { counted, offered: due.unwrap_or(counted), time, lost_core: Duration::ZERO })
    }

    fn total(&self) -> LoadResult {
        self.total.clone().unwrap_or_default()
    }
}

/// The bed without a router.
struct TwoCoreControl<A: BenchFamily> {
    cores: Cores,
    before: RoundTrip,
    run: CountedRun<A>,
}

impl<A: BenchFamily> PanelArm for TwoCoreControl<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        Ok(self.run.slice(&mut Unrouted, lead_in, length)?)
    }

    /// How far the two cores were apart before and after the panel; a panel on distant cores does not count.
    fn findings(&mut self) -> Findings {
        let total = self.run.total();
        let behind = total.offered.is_some_and(|offered| (total.sent as f64) < 0.999 * offered as f64);
        let mut found = Findings::default();
        found.reasons.extend(behind.then_some(Validity::GeneratorLimited));
        match self.cores.round_trip() {
            Ok(after) => note_distance(&mut found, [&self.before, &after]),
            Err(error) => {
                found.reasons.push(Validity::NoisyCores);
                found.events.push(format!("the distance of the cores is not known: {error}"));
            }
        }
        found
    }
}

/// Records how far the two cores were apart before and after a panel, and marks a panel on distant cores as invalid.
fn note_distance(found: &mut Findings, round_trips: [&RoundTrip; 2]) {
    let names = ["round_trip_before_ns", "round_trip_after_ns"];
    for (name, round_trip) in names.into_iter().zip(round_trips) {
        found.counters.insert(name.into(), round_trip.median_ns);
    }
    if !round_trips.iter().all(|round_trip| round_trip.is_near()) {
        found.reasons.push(Validity::NoisyCores);
    }
}

/// A router with its packets.
struct TwoCoreMember<A: BenchFamily> {
    run: CountedRun<A>,
    router: StagedRouter,
    events: Vec<String>,
}

impl<A: BenchFamily> TwoCoreMember<A> {
    fn of(path: ForwardPath<A>) -> Self {
        let ForwardPath { config, flows, router, through, events } = path;
        let router = StagedRouter { forwarder: router, through };
        TwoCoreMember { run: CountedRun { config, flows, total: None }, router, events }
    }
}

impl<A: BenchFamily> PanelArm for TwoCoreMember<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let StagedRouter { forwarder, through } = &mut self.router;
        Ok(match through.map(last_stage) {
            None => self.run.slice(forwarder, lead_in, length)?,
            Some(last @ Stage::Rewrite) => {
                self.run.slice(&mut Through::<true> { forwarder, last }, lead_in, length)?
            }
            Some(last) => self.run.slice(&mut Through::<false> { forwarder, last }, lead_in, length)?,
        })
    }

    fn findings(&mut self) -> Findings {
        findings(&self.run.total(), &self.events)
    }
}

impl<A: BenchFamily> PanelMember for TwoCoreMember<A> {
    fn control(&self) -> usize {
        0
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        came_out_right(&self.run.flows, &self.router.verify(&self.run.config, &self.run.flows)?)?;
        Ok(Verified::Ready)
    }
}
