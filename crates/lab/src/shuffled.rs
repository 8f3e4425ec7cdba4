//! The order in which the members of a panel are made: a fresh random one each time.
//!
//! What is made first gets the freshest memory, what is made last the rest. In one order for all panels the same code
//! comes out faster or slower in every block, by percents, and no number of blocks shows that it is the order.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::error::SubjectError;
use crate::panel::{Arm, Findings, Panel, Slice, SliceLimits, Verified};

/// The position at which the bench makes each member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Positions(Vec<usize>);

impl Positions {
    pub(crate) fn random(members: usize, random: &mut ChaCha8Rng) -> Self {
        let mut positions: Vec<usize> = (0..members).collect();
        positions.shuffle(random);
        Self(positions)
    }

    /// The members in the order of their positions.
    pub(crate) fn arrange<S: Clone>(&self, members: &[S]) -> Vec<S> {
        (0..members.len()).filter_map(|position| Some(members[self.member(position)?].clone())).collect()
    }

    /// The member at a position.
    pub(crate) fn member(&self, position: usize) -> Option<usize> {
        self.0.iter().position(|of_member| *of_member == position)
    }

    fn of(&self, member: usize) -> usize {
        self.0[member]
    }
}

/// A panel seen in the order of the experiment.
pub(crate) struct Shuffled<'p> {
    pub(crate) panel: &'p mut dyn Panel,
    pub(crate) positions: &'p Positions,
}

impl Panel for Shuffled<'_> {
    fn controls(&self) -> usize {
        self.panel.controls()
    }

    fn control_of(&self, member: usize) -> usize {
        self.panel.control_of(self.positions.of(member))
    }

    fn subtracts(&self) -> bool {
        self.panel.subtracts()
    }

    fn is_paced(&self) -> bool {
        self.panel.is_paced()
    }

    fn slice_limits(&self) -> SliceLimits {
        self.panel.slice_limits()
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        self.panel.verify(self.positions.of(member))
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let arm = match arm {
            Arm::Control(_) => arm,
            Arm::Member(member) => Arm::Member(self.positions.of(member)),
        };
        self.panel.slice(arm, lead_in, length)
    }

    fn findings(&mut self, member: usize) -> Findings {
        self.panel.findings(self.positions.of(member))
    }

    fn bed_findings(&mut self) -> Findings {
        self.panel.bed_findings()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn every_member_is_made_once_and_found_again() {
        let members: Vec<usize> = (0..7).collect();
        let mut orders = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let positions = Positions::random(members.len(), &mut ChaCha8Rng::seed_from_u64(seed));
            let made = positions.arrange(&members);
            for (position, member) in made.iter().enumerate() {
                assert_eq!((positions.of(*member), positions.member(position)), (position, Some(*member)));
            }
            assert_eq!(positions.member(members.len()), None);
            orders.insert(made);
        }
        assert_eq!(orders.len(), 20);
    }
}
