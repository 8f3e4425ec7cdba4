//! Forwarders of the test bed that are ready together and take turns.

use std::time::Duration;

use fullview_table::NextHop;

use fullview_plane::bpf::ProgramAttachment;
use fullview_plane::engine::{Engine, XdpConfig, XdpInterface, XdpNextHop, XdpPlace};
use fullview_plane::interface::SourceCheck;
use fullview_plane::view::TableReaders;

use super::bed::{SharedDevices, Testbed};
use super::core_wait::CoreWait;
use super::error::TestbedError;
use super::frames::{EGRESS, INGRESS, TestbedHeaders, station_mac, station_of};
use super::programs::{Counted, MOST_PATHS, TestbedPath, TestbedPrograms};

/// The longest packet of the links.
const MTU: u16 = 1500;

/// A forwarder under test.
pub enum Forwarder {
    /// The kernel's own path.
    Kernel,
    /// A program that looks up in the kernel's tables with `bpf_fib_lookup`.
    FibLookup,
    /// A program that sends everything to one station without any lookup.
    Redirect,
    /// The XDP engine with these tables.
    Engine(TableReaders),
}

/// What is attached to the router's end of a link.
enum Attached {
    Nothing,
    Program(#[expect(dead_code, reason = "held, because dropping it detaches")] ProgramAttachment),
    Engine(Box<Engine>),
}

/// A forwarder with its link.
struct ReadyForwarder {
    path: TestbedPath,
    attached: Attached,
}

/// The programs of a test bed, attached until this value is dropped.
pub struct Forwarders<'t> {
    ready: Vec<ReadyForwarder>,
    programs: TestbedPrograms,
    _receiving: [ProgramAttachment; 2],
    _generator: ProgramAttachment,
    devices: SharedDevices,
    wait: CoreWait,
    testbed: &'t mut Testbed,
}

/// A turn of an path.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Its counted part.
    pub counted: Counted,
    /// Time of the whole turn in which other work had the core.
    pub waited: Duration,
}

impl Turn {
    /// Time of the counted part in which other work had the core. Waits before it and after it are not pauses of the
    /// generator, and a slow batch is no wait.
    pub fn lost_core(&self) -> Duration {
        self.waited.min(self.counted.paused)
    }
}

/// The number of the way without a router; forwarders have the numbers after it.
const BESIDE: u32 = 0;

impl<'t> Forwarders<'t> {
    /// Attaches generator and receiver; the generator sends these sequences of destinations, from this core.
    pub fn new<A: TestbedHeaders>(
        testbed: &'t mut Testbed,
        sequences: &[&[A]],
        core: usize,
    ) -> Result<Self, TestbedError> {
        let (devices, mut programs) = (testbed.shared()?, TestbedPrograms::load(sequences)?);
        let [behind, beside] = devices.receiving;
        let receiving =
            testbed.receiver.within(|| Ok([programs.receive(behind)?, programs.receive(beside)?]))?;
        let generator = testbed.generator.within(|| programs.hold_generator(devices.idle))?;
        programs.set_only_way(devices.egress)?;
        Ok(Forwarders {
            ready: Vec::new(),
            programs,
            _receiving: receiving,
            _generator: generator,
            devices,
            wait: CoreWait::on(core),
            testbed,
        })
    }

    /// Attaches a forwarder to a link of its own, where the sequence of this number is sent.
    pub fn add(&mut self, forwarder: Forwarder, sequence: usize) -> Result<(), TestbedError> {
        let number = self.ready.len() + 1;
        if number >= MOST_PATHS {
            return Err(TestbedError::TooMany(MOST_PATHS - 1));
        }
        let [device, ingress] = self.testbed.link(self.ready.len())?;
        let (egress, programs) = (self.devices.egress, &mut self.programs);
        let attached = self.testbed.router.within(|| attach(forwarder, programs, ingress, egress))?;
        let path = TestbedPath { number: number as u32, device, sequence: sequence as u32, is_routed: true };
        self.ready.push(ReadyForwarder { path, attached });
        Ok(())
    }

    /// The way from the generator to the receiver without a router; it gets the sequence of this number.
    pub fn beside(&self, sequence: usize) -> TestbedPath {
        TestbedPath {
            number: BESIDE,
            device: self.devices.beside,
            sequence: sequence as u32,
            is_routed: false,
        }
    }

    /// The way through this forwarder.
    pub fn through(&self, forwarder: usize) -> TestbedPath {
        self.ready[forwarder].path
    }

    /// Sends `frames` frames at most for `lead_in` and then for `length`, which is counted.
    pub fn turn(
        &self,
        path: TestbedPath,
        frames: u32,
        (lead_in, length): (Duration, Duration),
    ) -> Result<Turn, TestbedError> {
        self.testbed.generator.within(|| {
            let before = self.wait.now();
            let counted = self.programs.turn(path, frames, (lead_in, length))?;
            Ok(Turn { counted, waited: self.wait.now().since(before) })
        })
    }

    /// Packets of a path that came with a wrong hop count.
    pub fn wrong(&self, path: TestbedPath) -> u64 {
        self.programs.wrong(path)
    }

    /// Packets that this forwarder passed to the kernel, which forwarded them; `None` if it is no engine.
    pub fn passed(&self, forwarder: usize) -> Result<Option<u64>, TestbedError> {
        let Attached::Engine(engine) = &self.ready[forwarder].attached else { return Ok(None) };
        Ok(Some(engine.counters()?.iter().map(fullview_plane::engine::XdpCounters::all_passed).sum()))
    }

    /// Sends each of the first `count` packets of the sequence once and returns to which stations they went, by
    /// their place in it; 0 for those that did not arrive.
    pub fn stations(&self, path: TestbedPath, count: u32) -> Result<Vec<u16>, TestbedError> {
        self.programs.record(path.sequence, true);
        let sent = self.turn(path, count, (Duration::ZERO, Duration::MAX));
        self.programs.record(path.sequence, false);
        sent?;
        Ok((0..count as usize).map(|packet| self.programs.station(packet)).collect())
    }
}

fn attach(
    forwarder: Forwarder,
    programs: &mut TestbedPrograms,
    ingress: u32,
    egress: u32,
) -> Result<Attached, TestbedError> {
    Ok(match forwarder {
        Forwarder::Kernel => Attached::Nothing,
        Forwarder::FibLookup => Attached::Program(programs.forward("fib_lookup", ingress)?),
        Forwarder::Redirect => Attached::Program(programs.forward("redirect", ingress)?),
        Forwarder::Engine(tables) => Attached::Engine(Box::new(engine(ingress, egress, tables)?)),
    })
}

fn engine(ingress: u32, egress: u32, tables: TableReaders) -> Result<Engine, TestbedError> {
    let mut engine = Engine::load()?;
    engine.attach(ingress, XdpPlace::Driver)?;
    engine.publish(&plan(ingress, egress), vec![tables])?;
    Ok(engine)
}

/// The engine's plan: every next hop leads to its station.
fn plan(ingress: u32, egress: u32) -> XdpConfig {
    let ways = (1..=NextHop::MAX).map(NextHop).map(|hop| {
        let destination = station_mac(station_of(hop));
        let way = XdpNextHop::Neighbor {
            interface: 1,
            ifindex: egress,
            vlan: 0,
            source: EGRESS,
            destination,
            mtu: MTU,
            mtu6: MTU,
        };
        (hop, way)
    });
    let ingress = XdpInterface {
        number: 0,
        ifindex: ingress,
        vlan: 0,
        mac: INGRESS,
        inet: true,
        inet6: true,
        table: 0,
        source_check: SourceCheck::Off,
    };
    XdpConfig { interfaces: vec![ingress], next_hops: ways.collect(), ..XdpConfig::default() }
}
