//! The arms of a panel, each a value of its own: members and controls of any kind take turns in one [`ArmPanel`].

use std::time::Duration;

use fullview_lab::{Arm, Findings, Panel, Slice, SliceLimits, SubjectError, Verified};
use rustix::time::{ClockId, clock_gettime};

use crate::traffic::frame::Headers;
use crate::traffic::load::Router;
use crate::traffic::one_core::{Bed, Flight, Lap};

/// What takes turns.
pub trait PanelArm {
    /// See [`Panel::slice`].
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError>;
    /// See [`Panel::findings`].
    fn findings(&mut self) -> Findings;
}

/// An arm that is judged.
pub trait PanelMember: PanelArm {
    /// The control with the same bed.
    fn control(&self) -> usize;
    /// See [`Panel::verify`].
    fn verify(&mut self) -> Result<Verified, SubjectError>;
}

/// A panel of such arms.
pub struct ArmPanel<'p> {
    /// Beds without a subject.
    pub controls: Vec<Box<dyn PanelArm + 'p>>,
    /// The subjects.
    pub members: Vec<Box<dyn PanelMember + 'p>>,
    /// Whether a member's time contains its control's.
    pub subtracts: bool,
    /// The lengths of slices that all arms can run.
    pub limits: SliceLimits,
}

impl Panel for ArmPanel<'_> {
    fn controls(&self) -> usize {
        self.controls.len()
    }

    fn control_of(&self, member: usize) -> usize {
        self.members[member].control()
    }

    fn subtracts(&self) -> bool {
        self.subtracts
    }

    fn slice_limits(&self) -> SliceLimits {
        self.limits
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        self.members[member].verify()
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        match arm {
            Arm::Control(control) => self.controls[control].slice(lead_in, length),
            Arm::Member(member) => self.members[member].slice(lead_in, length),
        }
    }

    fn findings(&mut self, member: usize) -> Findings {
        self.members[member].findings()
    }

    fn bed_findings(&mut self) -> Findings {
        let mut all = Findings::default();
        for of_control in self.controls.iter_mut().map(|control| control.findings()) {
            all.reasons.extend(of_control.reasons);
            all.events.extend(of_control.events);
            all.counters.extend(of_control.counters);
        }
        all
    }
}

/// The processor time of a thread from a moment on.
pub struct CoreClock {
    at_start: Duration,
}

impl CoreClock {
    /// Starts now, in the calling thread.
    pub fn start() -> Self {
        CoreClock { at_start: thread_time() }
    }

    /// The part of `elapsed`, the time since the start by the clock on the wall, in which the thread did not have its
    /// core. What passes between the readings of the two clocks is not part of it.
    pub fn lost_of(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_sub(thread_time().saturating_sub(self.at_start))
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One turn of a router on a bed: a lead-in, and what counts.
pub fn turn<A: Headers, R: Router>(
    bed: &mut Bed<'_>,
    flight: &mut Flight<'_, A>,
    router: &mut R,
    [lead_in, length]: [Duration; 2],
) -> Slice {
    if !lead_in.is_zero() {
        bed.run(flight, router, lead_in);
    }
    let clock = CoreClock::start();
    let Lap { offered, received, time, .. } = bed.run(flight, router, length);
    let lost_core = if flight.is_paced() { Duration::ZERO } else { clock.lost_of(time) };
    Slice { counted: received, offered, time, lost_core }
}
