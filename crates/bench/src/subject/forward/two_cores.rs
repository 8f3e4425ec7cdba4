//! Forwarding paths that take turns on two cores: generator and receiver on one, the router on the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullview_lab::{Findings, Slice, SliceLimits, SubjectError, Validity, Verified};
use fullview_plane::forward::Stage;

use super::one_core::StagedRouter;
use super::path::{BedKey, ForwardPath, came_out_right, findings, last_stage};
use crate::error::BenchError;
use crate::probe::RoundTrip;
use crate::subject::arms::{ArmPanel, PanelArm, PanelMember};
use crate::subject::cores::Cores;
use crate::subject::family::BenchFamily;
use crate::traffic::flow::FlowSet;
use crate::traffic::load::{LoadConfig, LoadError, LoadResult, Router, Through, Unrouted, Window};
use crate::traffic::two_cores::two_cores;

/// A panel of these paths.
pub(super) fn panel<A: BenchFamily>(
    paths: Vec<ForwardPath<A>>,
    cores: Cores,
    limits: SliceLimits,
) -> Result<ArmPanel<'static>, BenchError> {
    let Beds { runs, of_members } = Beds::of(&paths);
    let mut distance = Some(Distance { cores, before: cores.round_trip()? });
    let control = |run| Box::new(TwoCoreControl { distance: distance.take(), run }) as Box<dyn PanelArm>;
    let controls = runs.into_iter().map(control).collect();
    let paced = paths.iter().any(|path| path.config.pps.is_some());
    let member = |(path, control)| Box::new(TwoCoreMember::of(path, control)) as Box<dyn PanelMember>;
    let members = paths.into_iter().zip(of_members).map(member).collect();
    let mut panel = ArmPanel::new(controls, members, false, limits);
    panel.paced = paced;
    Ok(panel)
}

/// The beds of a panel. Members with the same one share it.
struct Beds<A: BenchFamily> {
    runs: Vec<CountedRun<A>>,
    /// The position of each member's.
    of_members: Vec<usize>,
}

impl<A: BenchFamily> Beds<A> {
    fn of(paths: &[ForwardPath<A>]) -> Self {
        let (mut beds, mut known) = (Beds { runs: Vec::new(), of_members: Vec::new() }, Vec::new());
        for ForwardPath { config, flows, .. } in paths {
            let key = BedKey::of(config, flows, config.ports());
            let bed = known.iter().position(|bed| *bed == key).unwrap_or(known.len());
            if bed == known.len() {
                known.push(key);
                beds.runs.push(CountedRun::new(config.clone(), Arc::clone(flows)));
            }
            beds.of_members.push(bed);
        }
        beds
    }
}

/// Runs of one router, and what they counted together.
struct CountedRun<A: BenchFamily> {
    config: LoadConfig,
    flows: Arc<FlowSet<A>>,
    total: Option<LoadResult>,
}

impl<A: BenchFamily> CountedRun<A> {
    fn new(config: LoadConfig, flows: Arc<FlowSet<A>>) -> Self {
        CountedRun { config, flows, total: None }
    }

    /// Core time that one of the two threads loses is not recorded: the other one goes on meanwhile with the packets in
    /// flight, so that a rate over the rest of the time would be too high.
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

/// How far the two cores are apart before and after a panel.
struct Distance {
    cores: Cores,
    before: RoundTrip,
}

impl Distance {
    /// A panel on distant cores does not count.
    fn note(&self, found: &mut Findings) {
        match self.cores.round_trip() {
            Ok(after) => note_distance(found, [&self.before, &after]),
            Err(error) => {
                found.reasons.push(Validity::NoisyCores);
                found.events.push(format!("the distance of the cores is not known: {error}"));
            }
        }
    }
}

/// A bed without a router.
struct TwoCoreControl<A: BenchFamily> {
    /// The first control of a panel measures it for all.
    distance: Option<Distance>,
    run: CountedRun<A>,
}

impl<A: BenchFamily> PanelArm for TwoCoreControl<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        Ok(self.run.slice(&mut Unrouted, lead_in, length)?)
    }

    /// A control that does not send what is due cannot offer this load to any router.
    fn findings(&mut self) -> Findings {
        let total = self.run.total();
        let behind = total.offered.is_some_and(|offered| (total.sent as f64) < 0.999 * offered as f64);
        let mut found = Findings::default();
        found.reasons.extend(behind.then_some(Validity::GeneratorLimited));
        self.distance.iter().for_each(|distance| distance.note(&mut found));
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
    control: usize,
    events: Vec<String>,
}

impl<A: BenchFamily> TwoCoreMember<A> {
    fn of(path: ForwardPath<A>, control: usize) -> Self {
        let ForwardPath { config, flows, router, through, events } = path;
        let router = StagedRouter::new(router, through);
        TwoCoreMember { run: CountedRun::new(config, flows), router, control, events }
    }
}

impl<A: BenchFamily> PanelArm for TwoCoreMember<A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let StagedRouter { forwarder, through, .. } = &mut self.router;
        Ok(match through.map(last_stage) {
            None => self.run.slice(forwarder, lead_in, length)?,
            Some(last @ Stage::Rewrite) => {
                self.run.slice(&mut Through::<true> { forwarder, last }, lead_in, length)?
            }
            Some(last) => self.run.slice(&mut Through::<false> { forwarder, last }, lead_in, length)?,
        })
    }

    fn findings(&mut self) -> Findings {
        let mut found = findings(&self.run.total(), &self.events);
        found.counters.extend(self.router.cache_counters());
        found
    }
}

impl<A: BenchFamily> PanelMember for TwoCoreMember<A> {
    fn control(&self) -> usize {
        self.control
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        came_out_right(&self.run.flows, &self.router.verify(&self.run.config, &self.run.flows)?)?;
        Ok(Verified::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::subject::forward::ForwardFactory;
    use crate::subject::inputs::Inputs;

    /// Paths with bursts of these lengths, whose threads may run on any core.
    fn paths(bursts: &[usize]) -> Vec<ForwardPath<u32>> {
        let (factory, mut inputs) = (ForwardFactory::new(Cores::observe().unwrap()), Inputs::new());
        let path = |burst: &usize| {
            let text = format!("table.source = \"two-routes\"\ntraffic.flows = 20\nload.burst = {burst}");
            let settings: Settings = toml::from_str(&text).unwrap();
            let mut path = factory.make::<u32>(&mut inputs, &settings, 1).unwrap();
            path.config.placement = None;
            path
        };
        bursts.iter().map(path).collect()
    }

    /// The members come in another order in each panel; their controls do not depend on it.
    #[test]
    fn members_with_other_bursts_have_a_control_each() {
        for (bursts, of_members) in [([64, 8, 64], [0, 1, 0]), ([8, 64, 64], [0, 1, 1])] {
            let mut beds = Beds::of(&paths(&bursts));
            assert_eq!(beds.of_members, of_members);
            let of_controls = beds.of_members.iter().map(|bed| beds.runs[*bed].config.burst);
            assert!(of_controls.eq(bursts));
            for run in &mut beds.runs {
                let time = Duration::from_millis(2);
                assert!(run.slice(&mut Unrouted, time, time).unwrap().time >= time);
            }
        }
    }

    #[test]
    fn members_with_other_loads_or_memory_have_a_control_each() {
        let mut paths = paths(&[64, 64, 64, 64]);
        paths[1].config.pps = Some(1e6);
        paths[2].config.packets = 512;
        assert_eq!(Beds::of(&paths).of_members, [0, 1, 2, 0]);
    }
}
