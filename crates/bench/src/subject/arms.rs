//! The arms of a panel, each a value of its own: members and controls of any kind take turns in one [`ArmPanel`].

use std::collections::BTreeMap;
use std::time::Duration;

use fullview_lab::{Arm, Findings, Panel, Slice, SliceLimits, SubjectError, Validity, Verified};

use crate::error::BenchError;
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
    /// Whether a schedule offers the load of some arm.
    pub paced: bool,
    /// The lengths of slices that all arms can run.
    pub limits: SliceLimits,
    /// What was wrong with members that take no turns.
    faults: BTreeMap<usize, String>,
}

impl<'p> ArmPanel<'p> {
    /// A panel of these arms, whose load no schedule offers.
    pub fn new(
        controls: Vec<Box<dyn PanelArm + 'p>>,
        members: Vec<Box<dyn PanelMember + 'p>>,
        subtracts: bool,
        limits: SliceLimits,
    ) -> Self {
        ArmPanel { controls, members, subtracts, paced: false, limits, faults: BTreeMap::new() }
    }
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

    fn is_paced(&self) -> bool {
        self.paced
    }

    fn slice_limits(&self) -> SliceLimits {
        self.limits
    }

    /// A member that is wrong takes no turns, as a contestant of a peer would.
    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        let verified = self.members[member].verify();
        let fault = verified.as_ref().err().and_then(|error| error.downcast_ref());
        let Some(BenchError::Wrong(fault)) = fault else { return verified };
        self.faults.insert(member, fault.clone());
        Ok(Verified::SetAside(Validity::Misrouted))
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        match arm {
            Arm::Control(control) => self.controls[control].slice(lead_in, length),
            Arm::Member(member) => self.members[member].slice(lead_in, length),
        }
    }

    fn findings(&mut self, member: usize) -> Findings {
        match self.faults.get(&member) {
            Some(fault) => Findings { events: vec![fault.clone()], ..Findings::default() },
            None => self.members[member].findings(),
        }
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
    let Lap { offered, received, time, lost_core, .. } = bed.run(flight, router, length);
    Slice { counted: received, offered, time, lost_core }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its packets come out wrong, or its bed fails.
    struct Faulty(Option<BenchError>);

    impl PanelArm for Faulty {
        fn slice(&mut self, _lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
            Ok(Slice { counted: 1, offered: 1, time: length, lost_core: Duration::ZERO })
        }

        fn findings(&mut self) -> Findings {
            Findings::default()
        }
    }

    impl PanelMember for Faulty {
        fn control(&self) -> usize {
            0
        }

        fn verify(&mut self) -> Result<Verified, SubjectError> {
            self.0.take().map_or(Ok(Verified::Ready), |error| Err(error.into()))
        }
    }

    #[test]
    fn a_member_that_is_wrong_takes_no_turns_and_says_why() {
        let limits = SliceLimits { shortest: Duration::from_millis(1), longest: Duration::from_millis(2) };
        let faults = [None, Some(BenchError::Wrong("9 of 10".into())), Some(BenchError::NoMembers)];
        let members = faults.map(|fault| Box::new(Faulty(fault)) as Box<dyn PanelMember>);
        let mut panel = ArmPanel::new(vec![Box::new(Faulty(None))], members.into(), false, limits);
        let verified: Vec<_> = (0..3).map(|member| panel.verify(member).ok()).collect();
        let misrouted = Verified::SetAside(Validity::Misrouted);
        assert_eq!(verified, [Some(Verified::Ready), Some(misrouted), None]);
        assert_eq!(panel.findings(1).events, ["9 of 10"]);
        assert!(panel.findings(0).events.is_empty());
    }
}
