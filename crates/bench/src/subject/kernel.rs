//! Forwarders inside the kernel, on the test bed of namespaces: ours beside the kernel's own.

use std::time::Duration;

use fullview_lab::{Findings, PanelError, PanelWork, Slice, SubjectError, Validity, Verified};
use fullview_plane::view::TableReaders;
use fullview_table::{Family, Table};

use super::arms::{ArmPanel, PanelArm, PanelMember};
use super::cores::Cores;
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::{Draw, Inputs};
use super::limits;
use crate::error::{BenchError, check, require};
use crate::settings::{KernelForwarder, Settings, Shape, TableSettings};
use crate::testbed::{
    Counted, Forwarder, Forwarders, MOST_PACKETS, Testbed, TestbedError, TestbedPath, Turn, station_of,
};
use crate::traffic::flow::FlowSet;
use fullview_router::algorithm;
use fullview_router::algorithm::{Names, RouterSettings};
use fullview_router::error::BadInput;

/// Makes panels of forwarders on the test bed of a campaign, which is made for its first panel.
pub struct KernelFactory {
    cores: Cores,
    testbed: Option<Testbed>,
    /// The tables and families whose routes the kernel has.
    routed: Vec<(TableSettings, Family)>,
}

impl KernelFactory {
    /// The generator and the forwarders run on these cores.
    pub fn new(cores: Cores) -> KernelFactory {
        KernelFactory { cores, testbed: None, routed: Vec::new() }
    }

    /// Makes the forwarders that these settings name ready together, and lends them to `work`.
    pub fn panel<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        streams: &[FamilyStream],
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let mut sequences = Sequences::<A>::default();
        for (member, stream) in streams.iter().enumerate() {
            of_member(member, || sequences.add(inputs, Draw::of(&stream.settings, seed)))?;
            of_member(member, || self.route::<A>(inputs, &stream.settings.table))?;
        }
        let core = self.cores.pin_one().map_err(of_bed)?;
        let testbed = self.testbed().map_err(of_bed)?;
        let mut ready = Forwarders::new(testbed, &sequences.destinations(), core).map_err(of_bed)?;
        for (member, stream) in streams.iter().enumerate() {
            of_member(member, || add(&mut ready, inputs, &stream.settings, sequences.of_member[member]))?;
        }
        work(&mut panel(&ready, streams, &sequences))
    }

    fn testbed(&mut self) -> Result<&mut Testbed, TestbedError> {
        Ok(match &mut self.testbed {
            Some(testbed) => testbed,
            empty => empty.insert(Testbed::new()?),
        })
    }

    /// Gives the routes of this table to the kernel, if it does not have them.
    fn route<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        settings: &TableSettings,
    ) -> Result<(), BenchError> {
        let this = (settings.clone(), A::FAMILY);
        if self.routed.contains(&this) {
            return Ok(());
        }
        let other = self.routed.iter().any(|(_, family)| *family == A::FAMILY);
        require(!other, || "kind \"kernel\": all variants share one table, since the kernel has one".into())?;
        self.testbed()?.route(A::rib(&*inputs.table(settings)?))?;
        self.routed.push(this);
        Ok(())
    }
}

/// Adds the forwarder that the settings name.
fn add(
    ready: &mut Forwarders<'_>,
    inputs: &mut Inputs,
    settings: &Settings,
    sequence: usize,
) -> Result<(), BenchError> {
    let forwarder = forwarder(kind(settings)?, &*inputs.table(&settings.table)?)?;
    Ok(ready.add(forwarder, sequence)?)
}

fn kind(settings: &Settings) -> Result<KernelForwarder, BadInput> {
    let missing = || BadInput("kind \"kernel\": set kernel.forwarder, to \"engine\" for example".into());
    settings.kernel.forwarder.ok_or_else(missing)
}

/// Names the member whose preparation failed.
fn of_member<T>(member: usize, make: impl FnOnce() -> Result<T, BenchError>) -> Result<T, PanelError> {
    make().map_err(|error| PanelError::Member { member, source: error.into() })
}

fn of_bed(error: impl Into<BenchError>) -> PanelError {
    PanelError::Bed(error.into().into())
}

/// How the report describes the bed.
pub fn describe(cores: Cores) -> Result<Vec<String>, BenchError> {
    let core = cores.of(Shape::OneCore)?;
    Ok(vec![
        format!("{core}: live-frames generator, forwarder and receiver run to completion"),
        "value: packets received per second, all three on one core".into(),
        "links: a veth pair from the generator to each forwarder, one from the router to the receiver, batches of 64, \
         GRO on at the router's ingress"
            .into(),
        "control: one veth pair from the generator to the receiver, without a router".into(),
        "for the whole campaign: links, and the routes of the kernel, because loading takes seconds; anew for every \
         panel: the programs, their maps, and the tables of fullview's engine"
            .into(),
        "receiver: every packet's station checked before each panel, every hop count during it".into(),
    ])
}

/// The packets of a draw that the test bed can send.
struct BedPackets<A> {
    draw: Draw,
    destinations: Vec<A>,
    /// The station of each destination.
    stations: Vec<u16>,
}

/// The packets of all members: those with the same table and traffic get the same ones.
#[derive(Default)]
struct Sequences<A> {
    distinct: Vec<BedPackets<A>>,
    /// Which one is each member's.
    of_member: Vec<usize>,
}

impl<A: BenchFamily> Sequences<A> {
    fn add(&mut self, inputs: &mut Inputs, draw: Draw) -> Result<(), BenchError> {
        let known = self.distinct.iter().position(|sequence| sequence.draw == draw);
        if known.is_none() {
            let flows = inputs.flows::<A>(&draw)?;
            self.distinct.push(BedPackets::new(draw, &flows)?);
        }
        self.of_member.push(known.unwrap_or(self.distinct.len() - 1));
        Ok(())
    }

    fn destinations(&self) -> Vec<&[A]> {
        self.distinct.iter().map(|sequence| &sequence.destinations[..]).collect()
    }
}

impl<A: BenchFamily> BedPackets<A> {
    fn new(draw: Draw, flows: &FlowSet<A>) -> Result<Self, BenchError> {
        let hops = flows.next_hops();
        let routed = flows.packets().iter().map(|flow| (flow.destination, hops[flow.id as usize]));
        let (destinations, stations): (Vec<A>, Vec<u16>) = routed
            .filter(|(addr, hop)| hop.is_some() && addr.is_usable())
            .map(|(addr, hop)| (addr, station_of(hop)))
            .unzip();
        check(!destinations.is_empty(), || "the traffic has no destination with a route".into())?;
        Ok(BedPackets { draw, destinations, stations })
    }
}

/// Frames of the first turn of an arm, which tells its rate.
const TRIAL: u32 = 1 << 14;
/// Frames of a turn, as a multiple of what the arm's latest rate takes. Those left over are not sent, which takes tens of
/// nanoseconds for each.
const SPARE: f64 = 1.25;
/// How often a turn is repeated, with twice the frames, when they did not suffice because the arm has become faster.
const ATTEMPTS: usize = 8;

/// What takes turns: a way through a forwarder, or the one without a router.
struct KernelArm<'p> {
    forwarders: &'p Forwarders<'p>,
    path: TestbedPath,
    /// Packets per second in its latest turn.
    rate: Option<f64>,
    /// Packets sent and received in its counted slices.
    sent: u64,
    received: u64,
}

impl<'p> KernelArm<'p> {
    fn new(forwarders: &'p Forwarders<'p>, path: TestbedPath) -> Self {
        KernelArm { forwarders, path, rate: None, sent: 0, received: 0 }
    }

    /// Takes a turn with as many frames as it needs.
    fn turn(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, BenchError> {
        let mut rate = self.rate.map_or_else(|| self.trial(), Ok)?;
        for _ in 0..ATTEMPTS {
            let frames = TRIAL + (rate * SPARE * (lead_in + length).as_secs_f64()) as u32;
            let turn = self.forwarders.turn(self.path, frames, (lead_in, length))?;
            if turn.counted.time >= length / 2 {
                return Ok(self.count(&turn));
            }
            rate *= 2.0;
        }
        Err(BenchError::Wrong(format!("the generator ran out of frames {ATTEMPTS} times in {length:?}")))
    }

    /// Packets per second of a short turn.
    fn trial(&self) -> Result<f64, BenchError> {
        let counted = self.forwarders.turn(self.path, TRIAL, (Duration::ZERO, Duration::MAX))?.counted;
        check(counted.right > 0, || "nothing is received on the test bed".into())?;
        Ok(counted.sent as f64 / counted.time.as_secs_f64())
    }

    fn count(&mut self, turn: &Turn) -> Slice {
        let Counted { sent, right, time, .. } = turn.counted;
        (self.sent, self.received) = (self.sent + sent, self.received + right);
        self.rate = Some(sent as f64 / time.as_secs_f64());
        Slice { counted: right, offered: sent, time, lost_core: turn.lost_core() }
    }
}

impl PanelArm for KernelArm<'_> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        Ok(self.turn(lead_in, length)?)
    }

    fn findings(&mut self) -> Findings {
        let wrong = self.forwarders.wrong(self.path);
        let mut findings = Findings::default();
        findings.reasons.extend((wrong > 0).then_some(Validity::Misrouted));
        let figures = [("sent", self.sent), ("received", self.received), ("wrong", wrong)];
        findings.counters.extend(figures.map(|(name, count)| (name.to_owned(), count as f64)));
        findings
    }
}

/// A forwarder with the packets that it gets.
struct KernelMember<'p, A> {
    arm: KernelArm<'p>,
    number: usize,
    kind: Option<KernelForwarder>,
    sequence: &'p BedPackets<A>,
}

impl<A: BenchFamily> KernelMember<'_, A> {
    /// The station that a packet has to go to.
    fn station(&self, packet: usize) -> u16 {
        match self.kind {
            Some(KernelForwarder::Redirect) => 1,
            _ => self.sequence.stations[packet],
        }
    }
}

impl<A: BenchFamily> PanelArm for KernelMember<'_, A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.arm.slice(lead_in, length)
    }

    fn findings(&mut self) -> Findings {
        let mut findings = self.arm.findings();
        let passed = self.arm.forwarders.passed(self.number).ok().flatten();
        findings.counters.extend(passed.map(|count| ("passed to the kernel".to_owned(), count as f64)));
        findings
    }
}

impl<A: BenchFamily> PanelMember for KernelMember<'_, A> {
    fn control(&self) -> usize {
        0
    }

    /// Sends every packet of the sequence once: none may be lost, and each must reach the station of its route in the RIB.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        let count = self.sequence.destinations.len().min(MOST_PACKETS);
        let went = self.arm.forwarders.stations(self.arm.path, count as u32).map_err(BenchError::from)?;
        let mut strays = (0..count).filter(|packet| went[*packet] != self.station(*packet));
        let Some(packet) = strays.next() else { return Ok(Verified::Ready) };
        let (addr, went, right) = (self.sequence.destinations[packet], went[packet], self.station(packet));
        let (addr, others) = (addr.to_ip(), strays.count());
        Err(BenchError::Wrong(format!(
            "{addr} went to station {went}, not to {right} (0: nowhere), and {others} more"
        )))?
    }
}

/// The forwarders, and the way without a router as the control. It has one link less than a forwarder has, so that its time
/// is not to be subtracted.
fn panel<'p, A: BenchFamily>(
    ready: &'p Forwarders<'p>,
    streams: &[FamilyStream],
    sequences: &'p Sequences<A>,
) -> ArmPanel<'p> {
    let members = streams.iter().enumerate().map(|(number, stream)| {
        let (arm, kind) = (KernelArm::new(ready, ready.through(number)), stream.settings.kernel.forwarder);
        let sequence = &sequences.distinct[sequences.of_member[number]];
        Box::new(KernelMember { arm, number, kind, sequence }) as Box<dyn PanelMember>
    });
    let control = Box::new(KernelArm::new(ready, ready.beside(0)));
    ArmPanel::new(vec![control], members.collect(), false, limits::of_panel(streams))
}

fn forwarder(kind: KernelForwarder, table: &Table) -> Result<Forwarder, BenchError> {
    Ok(match kind {
        KernelForwarder::IpForward => Forwarder::Kernel,
        KernelForwarder::FibLookup => Forwarder::FibLookup,
        KernelForwarder::Redirect => Forwarder::Redirect,
        KernelForwarder::Engine => {
            let named = |name: &str| RouterSettings {
                algorithm: Some(Names::One(name.into())),
                ..RouterSettings::default()
            };
            let inet = algorithm::compile(&named(fullview_plane::engine::INET_ALGORITHM), &table.inet)?;
            let inet6 = algorithm::compile(&named(fullview_plane::engine::INET6_ALGORITHM), &table.inet6)?;
            Forwarder::Engine(TableReaders::fixed(inet.fib, inet6.fib))
        }
    })
}
