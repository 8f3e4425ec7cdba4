//! A panel whose arms are in several processes.

use std::time::Duration;

use fullview_lab::{Arm, Findings, Panel, Slice, SliceLimits, SubjectError, Verified};

use super::error::ServedError;
use super::process::ServedProcess;
use super::protocol::{
    PanelRequest, Reply, Request, ServedArm, ServedFailure, ServedFindings, ServedMember, ServedPanelFacts,
    SliceRequest, nanoseconds, read,
};

/// A process with the members and controls that it serves.
pub struct ServedGroup {
    process: ServedProcess,
    facts: ServedPanelFacts,
    findings: Option<ServedFindings>,
}

/// A member that could not be made, by its position in its group, or the reason why the group could not.
pub struct GroupError {
    pub member: Option<usize>,
    pub source: ServedError,
}

impl ServedGroup {
    /// Lets a process make and verify these members.
    pub fn new(mut process: ServedProcess, asked: PanelRequest) -> Result<Self, GroupError> {
        let members = asked.members.len();
        let whole = |source| GroupError { member: None, source };
        match process.ask(&Request::Panel(asked)).map_err(whole)? {
            Reply::Ready(facts) if facts.is_of(members) => Ok(Self { process, facts, findings: None }),
            Reply::Error(ServedFailure { member, message }) => {
                Err(GroupError { member, source: process.failed(message) })
            }
            other => Err(whole(process.unexpected(&format!("{other:?}")))),
        }
    }

    /// What the members and the bed report, asked for once.
    fn findings(&mut self) -> Result<&ServedFindings, ServedError> {
        if self.findings.is_none() {
            let found = match self.process.ask(&Request::Findings)? {
                Reply::Findings(found) if found.members.len() == self.facts.members.len() => found,
                other => return Err(self.process.unexpected(&format!("{other:?}"))),
            };
            self.findings = Some(found);
        }
        self.findings.as_ref().ok_or_else(|| self.process.unexpected("no findings"))
    }

    fn slice(&mut self, arm: ServedArm, lead_in: Duration, length: Duration) -> Result<Slice, ServedError> {
        let [lead_in_ns, length_ns] = [lead_in, length].map(nanoseconds);
        match self.process.ask(&Request::Slice(SliceRequest { arm, lead_in_ns, length_ns }))? {
            Reply::Slice(slice) => Ok(slice.into()),
            other => Err(self.process.unexpected(&format!("{other:?}"))),
        }
    }
}

impl ServedPanelFacts {
    /// Whether they are facts of so many members, which the lab can use.
    fn is_of(&self, members: usize) -> bool {
        let controls = self.members.iter().all(|member| member.control < self.controls);
        self.members.len() == members && controls && self.shortest_ns <= self.longest_ns
    }
}

/// Members of several processes that take turns.
pub struct ServedPanel {
    groups: Vec<ServedGroup>,
    /// The group of each member and its position there.
    members: Vec<(usize, usize)>,
}

impl ServedPanel {
    /// `members` has the group of each member in the order of the panel; in a group, members keep that order.
    pub fn new(groups: Vec<ServedGroup>, members: &[usize]) -> Self {
        let position = |(at, group): (usize, &usize)| {
            (*group, members[..at].iter().filter(|before| *before == group).count())
        };
        let members = members.iter().enumerate().map(position).collect();
        Self { groups, members }
    }

    /// The group of a control and its position there.
    fn control(&self, control: usize) -> (usize, usize) {
        let mut left = control;
        for (index, group) in self.groups.iter().enumerate() {
            if left < group.facts.controls {
                return (index, left);
            }
            left -= group.facts.controls;
        }
        (0, 0)
    }

    fn controls_before(&self, group: usize) -> usize {
        self.groups[..group].iter().map(|group| group.facts.controls).sum()
    }

    fn member(&self, member: usize) -> &ServedMember {
        let (group, position) = self.members[member];
        &self.groups[group].facts.members[position]
    }
}

impl Panel for ServedPanel {
    fn controls(&self) -> usize {
        self.controls_before(self.groups.len())
    }

    fn control_of(&self, member: usize) -> usize {
        self.controls_before(self.members[member].0) + self.member(member).control
    }

    fn subtracts(&self) -> bool {
        self.groups.iter().all(|group| group.facts.subtracts)
    }

    fn is_paced(&self) -> bool {
        self.groups.iter().any(|group| group.facts.paced)
    }

    fn slice_limits(&self) -> SliceLimits {
        let limits = || self.groups.iter().map(|group| group.facts.limits());
        let shortest = limits().map(|limits| limits.shortest).max().unwrap_or_default();
        let longest = limits().map(|limits| limits.longest).min().unwrap_or_default();
        SliceLimits { shortest, longest: longest.max(shortest) }
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        let (group, _) = self.members[member];
        let process = &self.groups[group].process;
        match self.member(member) {
            ServedMember { wrong: Some(wrong), .. } => Err(process.failed(wrong.clone()).into()),
            ServedMember { set_aside: Some(reason), .. } => match read(reason) {
                Some(reason) => Ok(Verified::SetAside(reason)),
                None => Err(process.failed(format!("set aside for an unknown reason, {reason}")).into()),
            },
            _ => Ok(Verified::Ready),
        }
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let (group, arm) = match arm {
            Arm::Control(control) => {
                let (group, control) = self.control(control);
                (group, ServedArm::Control(control))
            }
            Arm::Member(member) => (self.members[member].0, ServedArm::Member(self.members[member].1)),
        };
        Ok(self.groups[group].slice(arm, lead_in, length)?)
    }

    fn findings(&mut self, member: usize) -> Findings {
        let (group, position) = self.members[member];
        let found = self.groups[group].findings().map(|found| found.members[position].clone());
        found.map_or_else(|error| unknown(&error), Findings::from)
    }

    fn bed_findings(&mut self) -> Findings {
        let mut all = Findings::default();
        for group in &mut self.groups {
            let found = group.findings().map(|found| found.bed.clone());
            let found = found.map_or_else(|error| unknown(&error), Findings::from);
            all.reasons.extend(found.reasons);
            all.events.extend(found.events);
            all.counters.extend(found.counters);
        }
        all
    }
}

/// A process that does not report its findings may have found anything, so that its panel does not count.
fn unknown(error: &ServedError) -> Findings {
    let reasons = vec![fullview_lab::Validity::Refused];
    Findings { reasons, events: vec![error.to_string()], ..Findings::default() }
}
