//! Routers with delays as the members of a panel.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fullview_bench::core_clock::CoreClock;
use fullview_bench::error::BenchError;
use fullview_bench::placement::{Placement, Role};
use fullview_bench::settings::{TableSettings, TrafficSettings};
use fullview_bench::subject::arms::{ArmPanel, PanelArm, PanelMember, turn};
use fullview_bench::traffic::check::Passage;
use fullview_bench::traffic::flow::FlowSet;
use fullview_bench::traffic::frame::FrameSize;
use fullview_bench::traffic::load::{LoadConfig, Router, Unrouted, frames};
use fullview_bench::traffic::one_core::{Bed, Flight};
use fullview_bench::workload::router::router;
use fullview_bench::workload::{packets, table};
use fullview_lab::{
    Bench, Findings, PanelError, PanelWork, Settings, Slice, SliceLimits, SubjectError, Validity, Verified,
};
use fullview_plane::burst::{Arena, Burst};
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
        let flight = |passage| -> Result<_, PanelError> {
            let made = Flight::new(&config, &flows, &frames, passage);
            Ok(Rc::new(RefCell::new(made.map_err(|error| failed(error.into()))?)))
        };
        let parts = Parts {
            bed: Rc::new(RefCell::new(Bed::new(&mut arena, &frames, config.ports()))),
            passing: flight(Passage::Direct)?,
            forwarded: flight(Passage::Routed(&config.departures))?,
            forwarder: Rc::new(RefCell::new(self.forwarder().map_err(failed)?)),
            burst: config.burst,
        };
        let of_bed = || self.chain.delay(bed_ns, true);
        let member = |settings| parts.member(settings, of_bed(), self.delay(settings));
        let controls: Vec<Box<dyn PanelArm + '_>> =
            vec![Box::new(parts.passing(of_bed(), self.chain.delay(0, true)))];
        let members = members.iter().map(member).collect();
        work(&mut ArmPanel::new(controls, members, true, LIMITS))
    }

    fn conditions(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// What all routers on a bed share.
struct Parts<'p> {
    bed: Rc<RefCell<Bed<'p>>>,
    passing: SharedFlight<'p>,
    forwarded: SharedFlight<'p>,
    forwarder: Rc<RefCell<Forwarder>>,
    burst: usize,
}

impl<'p> Parts<'p> {
    fn member(&self, settings: &DelaySettings, of_bed: Delay, own: Delay) -> Box<dyn PanelMember + 'p> {
        match settings.router {
            Some(DelayedRouter::Alone) => Box::new(Alone { delay: own, burst: self.burst }),
            Some(DelayedRouter::Pass) => Box::new(self.passing(of_bed, own)),
            _ => {
                let router = Delayed { of_bed, own, router: SharedForwarder(Rc::clone(&self.forwarder)) };
                Box::new(OnBed { bed: Rc::clone(&self.bed), flight: Rc::clone(&self.forwarded), router })
            }
        }
    }

    fn passing(&self, of_bed: Delay, own: Delay) -> OnBed<'p, Delayed<Unrouted>> {
        let router = Delayed { of_bed, own, router: Unrouted };
        OnBed { bed: Rc::clone(&self.bed), flight: Rc::clone(&self.passing), router }
    }
}

/// Packets that all routers on a bed share, so that they do not differ in the layout of memory.
type SharedFlight<'p> = Rc<RefCell<Flight<'p, u32>>>;

/// One forwarding loop for all delays, for the same reason.
struct SharedForwarder(Rc<RefCell<Forwarder>>);

impl Router for SharedForwarder {
    fn route<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut [Burst<'a>], dropped: &mut Burst<'a>) {
        self.0.borrow_mut().route(burst, forwarded, dropped);
    }
}

/// A router on the bed.
struct OnBed<'p, R> {
    bed: Rc<RefCell<Bed<'p>>>,
    flight: SharedFlight<'p>,
    router: R,
}

impl<R: Router> PanelArm for OnBed<'_, R> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let OnBed { bed, flight, router } = self;
        Ok(turn(&mut bed.borrow_mut(), &mut flight.borrow_mut(), router, [lead_in, length]))
    }

    fn findings(&mut self) -> Findings {
        let result = self.flight.borrow().result();
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
