//! Routers with delays as the members of a panel.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fullview_bench::error::BenchError;
use fullview_bench::placement::{Placement, Role};
use fullview_bench::settings::{TableSettings, TrafficSettings};
use fullview_bench::subject::arms::{ArmPanel, CoreClock, PanelArm, PanelMember, turn};
use fullview_bench::traffic::flow::FlowSet;
use fullview_bench::traffic::frame::{FrameSize, Frames};
use fullview_bench::traffic::load::{LoadConfig, Router, Unrouted, frames, passage};
use fullview_bench::traffic::one_core::{Bed, Flight};
use fullview_bench::workload::router::router;
use fullview_bench::workload::{packets, table};
use fullview_lab::{
    Bench, Findings, PanelError, PanelWork, Settings, Slice, SliceLimits, SubjectError, Validity, Verified,
};
use fullview_plane::burst::Arena;
use fullview_plane::forward::Forwarder;
use fullview_router::algorithm::{self, Names, RouterSettings};
use fullview_table::Table;
use serde::{Deserialize, Serialize};

use super::delay::{Chain, Delay, Delayed};

/// Bursts between two readings of the clock, as on the bed.
const BURSTS_PER_CLOCK_READING: usize = 16;
const LIMITS: SliceLimits =
    SliceLimits { shortest: Duration::from_micros(200), longest: Duration::from_millis(16) };

/// What a variant sets.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct DelaySettings {
    router: Option<DelayedRouter>,
    ns: Option<u32>,
    fenced: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DelayedRouter {
    /// The chain without a bed.
    Alone,
    /// Packets pass unchanged.
    Pass,
    /// The forwarding loop.
    Forward,
}

impl Settings for DelaySettings {
    fn over(self, _base: &Self) -> Self {
        self
    }
}

/// Makes the panels.
pub struct DelayBench {
    chain: Chain,
    table: Table,
}

impl DelayBench {
    pub fn new(chain: Chain) -> Self {
        let settings = TableSettings { source: Some("two-routes".into()), ..TableSettings::default() };
        Placement::one_core().unwrap().pin(Role::Ends).unwrap();
        DelayBench { chain, table: table::load(&settings).unwrap() }
    }

    fn delay(&self, settings: &DelaySettings) -> Delay {
        self.chain.delay(settings.ns.unwrap_or(0), settings.fenced.unwrap_or(true))
    }

    /// The bed of that name: what it changes of the usual one, and its delay.
    fn bed(&self, name: &str) -> (LoadConfig, u32) {
        let departures = packets::departures(&self.table.next_hops, 1);
        let usual = LoadConfig::new(FrameSize::Smallest, packets::MACS, departures);
        let check = |one_in| NonZeroU32::new(one_in).unwrap();
        match name {
            "check-all" => (LoadConfig { check_one_in: check(1), ..usual }, 0),
            "check-1024" => (LoadConfig { check_one_in: check(1024), ..usual }, 0),
            "packets-256" => (LoadConfig { packets: 256, ..usual }, 0),
            "packets-32768" => (LoadConfig { packets: 32_768, ..usual }, 0),
            "bed-delay-20" => (usual, 20),
            _ => (usual, 0),
        }
    }

    fn forwarder(&self) -> Result<Forwarder, BenchError> {
        let algorithm = Some(Names::One("dpdk_lpm4".into()));
        let settings = RouterSettings { algorithm, ..RouterSettings::default() };
        let inet = algorithm::compile(&settings, &self.table.inet)?.fib;
        let inet6 = algorithm::without_routes()?;
        router(inet, inet6, &self.table.next_hops, (packets::MACS.destination, 1))
    }
}

impl Bench<DelaySettings> for DelayBench {
    fn panel(
        &mut self,
        members: &[DelaySettings],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let failed = |error: BenchError| PanelError::Bed(error.into());
        let (config, bed_ns) = self.bed(family);
        let flows = packets::flows(&TrafficSettings::default(), &self.table.inet, seed);
        let flows: FlowSet<u32> = flows.map_err(|error| failed(error.into()))?;
        let frames = frames::<u32>(&config).map_err(|error| failed(error.into()))?;
        let mut arena = Arena::new(config.packets);
        let bed = Bed::new(&mut arena, &frames, config.ports());
        let parts =
            Parts { bed: Rc::new(RefCell::new(bed)), config: &config, flows: &flows, frames: &frames };
        let of_bed = || self.chain.delay(bed_ns, true);
        let no_delay = self.chain.delay(0, true);
        let control = Delayed { of_bed: of_bed(), own: no_delay, router: Unrouted };
        let controls: Vec<Box<dyn PanelArm>> = vec![Box::new(parts.member(control).map_err(failed)?)];
        let mut arms: Vec<Box<dyn PanelMember>> = Vec::new();
        for settings in members {
            let (of_bed, own) = (of_bed(), self.delay(settings));
            arms.push(match settings.router {
                Some(DelayedRouter::Alone) => Box::new(Alone { delay: own, burst: config.burst }),
                Some(DelayedRouter::Pass) => {
                    Box::new(parts.member(Delayed { of_bed, own, router: Unrouted }).map_err(failed)?)
                }
                _ => {
                    let router = self.forwarder().map_err(failed)?;
                    Box::new(parts.member(Delayed { of_bed, own, router }).map_err(failed)?)
                }
            });
        }
        work(&mut ArmPanel { controls, members: arms, subtracts: true, limits: LIMITS })
    }

    fn conditions(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// What all routers on a bed share.
struct Parts<'p> {
    bed: Rc<RefCell<Bed<'p>>>,
    config: &'p LoadConfig,
    flows: &'p FlowSet<u32>,
    frames: &'p Frames<u32>,
}

impl<'p> Parts<'p> {
    fn member<R: Router>(&self, router: R) -> Result<OnBed<'p, R>, BenchError> {
        let flight = Flight::new(self.config, self.flows, self.frames, passage::<R>(self.config))?;
        Ok(OnBed { bed: Rc::clone(&self.bed), flight, router })
    }
}

/// A router on the bed.
struct OnBed<'p, R> {
    bed: Rc<RefCell<Bed<'p>>>,
    flight: Flight<'p, u32>,
    router: R,
}

impl<R: Router> PanelArm for OnBed<'_, R> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        Ok(turn(&mut self.bed.borrow_mut(), &mut self.flight, &mut self.router, [lead_in, length]))
    }

    fn findings(&mut self) -> Findings {
        let result = self.flight.result();
        let wrong = result.received.wrong > 0 || result.lost() > 0 || result.dropped > 0;
        Findings {
            reasons: wrong.then_some(Validity::Misrouted).into_iter().collect(),
            ..Findings::default()
        }
    }
}

impl<R: Router> PanelMember for OnBed<'_, R> {
    fn control(&self) -> usize {
        0
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        Ok(Verified::Ready)
    }
}

/// A chain without a bed, burst after burst.
struct Alone {
    delay: Delay,
    burst: usize,
}

impl Alone {
    fn run(&self, length: Duration) -> Slice {
        let (clock, started, mut counted) = (CoreClock::start(), Instant::now(), 0);
        loop {
            (0..BURSTS_PER_CLOCK_READING).for_each(|_| self.delay.spend(self.burst));
            counted += (BURSTS_PER_CLOCK_READING * self.burst) as u64;
            let time = started.elapsed();
            if time >= length {
                return Slice { counted, offered: counted, time, lost_core: clock.lost_of(time) };
            }
        }
    }
}

impl PanelArm for Alone {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.run(lead_in);
        Ok(self.run(length))
    }

    fn findings(&mut self) -> Findings {
        Findings::default()
    }
}

impl PanelMember for Alone {
    fn control(&self) -> usize {
        0
    }

    fn verify(&mut self) -> Result<Verified, SubjectError> {
        Ok(Verified::Ready)
    }
}
