//! The generator in the kernel, which sends several times as many packets as a socket does. Its packets differ in their
//! destinations only, and each is counted by a program at the receiver.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fullview_plane::bpf::ProgramAttachment;

use super::bed::DeviceBed;
use super::error::DeviceBedError;
use crate::rates::keep_real_time;
use crate::testbed::{Counted, MOST_PACKETS, TestbedHeaders, TestbedPath, TestbedPrograms};
use crate::traffic::flow::FlowSet;

/// Packets a second that it is taken to send at first.
const FIRST_RATE: f64 = 5e6;
/// Frames beyond those of its latest rate.
const SPARE: f64 = 1.25;
const LEAST: u32 = 1 << 14;
/// How often a turn is repeated, with twice the frames, when they did not suffice.
const ATTEMPTS: usize = 8;

/// The programs of all beds of a panel.
pub struct LiveGenerator {
    programs: Mutex<TestbedPrograms>,
    _held: ProgramAttachment,
}

impl LiveGenerator {
    /// Loads it with the destinations of each arm, whose numbers are their places. It is held by a namespace of this bed.
    pub fn load<A: TestbedHeaders>(
        holder: &DeviceBed,
        destinations: &[Vec<A>],
    ) -> Result<LiveGenerator, DeviceBedError> {
        let sequences: Vec<&[A]> = destinations.iter().map(Vec::as_slice).collect();
        let mut programs = TestbedPrograms::load(&sequences)?;
        let idle = holder.testbed.generator.device("lo")?;
        let held = holder.testbed.generator.within(|| programs.hold_generator(idle))?;
        Ok(LiveGenerator { programs: Mutex::new(programs), _held: held })
    }

    /// Sends to one bed.
    pub fn arm<'p>(&'p self, bed: &'p DeviceBed, number: u32) -> Result<LiveArm<'p>, DeviceBedError> {
        let device = bed.testbed.generator.device(bed.source())?;
        let path = TestbedPath { number, device, sequence: number, is_routed: bed.is_routed };
        Ok(LiveArm { generator: self, bed, path, receiving: None, rate: FIRST_RATE })
    }
}

/// The generator at one bed.
pub struct LiveArm<'p> {
    generator: &'p LiveGenerator,
    bed: &'p DeviceBed,
    path: TestbedPath,
    /// While it is attached nothing else receives the packets.
    receiving: Option<ProgramAttachment>,
    /// Packets a second that were sent in its latest turn.
    rate: f64,
}

impl LiveArm<'_> {
    /// Sends for `lead_in`, which is not counted, and then for `length`.
    pub fn turn(&mut self, lead_in: Duration, length: Duration) -> Result<Counted, DeviceBedError> {
        self.receive()?;
        for _ in 0..ATTEMPTS {
            let frames = LEAST + (self.rate * SPARE * (lead_in + length).as_secs_f64()) as u32;
            let counted = self.send(frames, (lead_in, length))?;
            if counted.time >= length / 2 {
                self.rate = counted.sent as f64 / counted.time.as_secs_f64();
                return Ok(counted);
            }
            self.rate *= 2.0;
        }
        Err(DeviceBedError::Stuck)
    }

    fn send(&self, frames: u32, times: (Duration, Duration)) -> Result<Counted, DeviceBedError> {
        let programs = self.generator.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let (core, programs) = (self.bed.cores.generator, &*programs);
        let sent = || {
            keep_real_time(core)?;
            Ok::<_, DeviceBedError>(programs.turn(self.path, frames, times)?)
        };
        self.bed.testbed.generator.within(|| Ok(sent()))?
    }

    fn receive(&mut self) -> Result<(), DeviceBedError> {
        if self.receiving.is_none() {
            let (receiver, sink) = (&self.bed.testbed.receiver, self.bed.sink());
            let device = receiver.device(sink)?;
            let mut programs = self.generator.programs.lock().unwrap_or_else(PoisonError::into_inner);
            let programs = &mut *programs;
            self.receiving = Some(receiver.within(|| programs.receive(device))?);
        }
        Ok(())
    }

    /// Lets others receive packets again.
    pub fn pause(&mut self) {
        self.receiving = None;
    }

    /// Packets that came with a wrong hop count.
    pub fn wrong(&self) -> u64 {
        self.generator.programs.lock().unwrap_or_else(PoisonError::into_inner).wrong(self.path)
    }
}

/// The destinations of flows, if no two flows have the same one, and the generator has room for all.
pub fn destinations<A: TestbedHeaders>(flows: &FlowSet<A>) -> Option<Vec<A>> {
    let all: Vec<A> = flows.packets().iter().map(|flow| flow.destination).collect();
    let of_flows: BTreeSet<(u32, A)> =
        flows.packets().iter().map(|flow| (flow.id, flow.destination)).collect();
    let distinct: BTreeSet<A> = all.iter().copied().collect();
    let fits = distinct.len() == of_flows.len() && all.len() <= MOST_PACKETS;
    (fits && all.iter().all(|address| address.is_usable())).then_some(all)
}
