//! A bench without a clock: each slice depends only on the settings, the seed of the panel, the arm and a counter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fullview_lab::{
    Arm, Bench, Findings, Panel, PanelError, PanelRecord, PanelStart, PanelWork, Progress, Slice,
    SliceLimits, SubjectError, Validity, Verified,
};

use super::experiment::MockSettings;

/// Packets per second of the bed without a subject.
const CONTROL: f64 = 4e6;
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(8);

/// Makes panels and counts them.
#[derive(Debug, Clone, Default)]
pub struct MockBench {
    /// Panels made.
    pub panels: u32,
    /// Members verified.
    pub verified: u32,
    /// Slices run.
    pub slices: u32,
    /// The arms in the order of their turns.
    pub turns: Vec<Arm>,
    /// The flag that stops the campaign; the mock sets it in this panel, counted from 1.
    pub stop: Arc<AtomicBool>,
    pub stop_in: Option<u32>,
    /// What the machine does.
    pub machine: Machine,
}

/// What the machine does besides noise.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// How much faster the member is that is verified last: the copy of the baseline.
    pub copy: f64,
    /// In this panel, counted from 1, nothing comes out of the copy.
    pub copy_stalls_in: Option<u32>,
    /// Relative change of every arm's rate from the first round to the thousandth.
    pub drift: f64,
    /// Share of the rounds in which every arm is five times slower.
    pub disturbed: f64,
    /// Whether the time of the control is part of a member's.
    pub subtracts: bool,
    /// Whether it says that a schedule offers the load.
    pub paced: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self { copy: 1.0, copy_stalls_in: None, drift: 0.0, disturbed: 0.0, subtracts: true, paced: false }
    }
}

impl MockBench {
    /// The orders of four turns that occurred.
    #[allow(dead_code, reason = "not every test that has the mock looks at the order")]
    pub fn orders(&self) -> BTreeSet<Vec<Arm>> {
        self.turns.chunks(4).map(<[Arm]>::to_vec).collect()
    }
}

pub struct MockPanel<'a> {
    mock: &'a mut MockBench,
    members: &'a [MockSettings],
    inet6: bool,
    seed: u64,
    verified: Vec<bool>,
    last_verified: usize,
    /// Slices of each arm in this panel.
    counts: BTreeMap<Arm, u32>,
    /// Packets offered to each member and received from it.
    packets: BTreeMap<usize, (u64, u64)>,
}

impl Bench<MockSettings> for MockBench {
    fn panel(
        &mut self,
        members: &[MockSettings],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        self.panels += 1;
        let stops = self.stop_in == Some(self.panels);
        self.stop.fetch_or(stops, Ordering::Relaxed);
        let mut panel = MockPanel {
            members,
            inet6: family == "inet6",
            seed,
            verified: vec![false; members.len()],
            last_verified: 0,
            counts: BTreeMap::new(),
            packets: BTreeMap::new(),
            mock: self,
        };
        work(&mut panel)
    }

    fn conditions(&mut self) -> Vec<String> {
        vec!["a mock".into()]
    }
}

impl Panel for MockPanel<'_> {
    fn controls(&self) -> usize {
        self.beds().len()
    }

    fn control_of(&self, member: usize) -> usize {
        let of_member = bed(&self.members[member]);
        self.beds().iter().position(|bed| *bed == of_member).unwrap()
    }

    fn subtracts(&self) -> bool {
        self.mock.machine.subtracts
    }

    fn is_paced(&self) -> bool {
        self.mock.machine.paced
    }

    fn slice_limits(&self) -> SliceLimits {
        SliceLimits { shortest: SHORTEST, longest: LONGEST }
    }

    fn verify(&mut self, member: usize) -> Result<Verified, SubjectError> {
        let settings = &self.members[member];
        if settings.wrong == Some(true) {
            return Err("key 3 gave next hop 4, and 5 is right".into());
        }
        if settings.refuses == Some(true) {
            return Ok(Verified::SetAside(Validity::Refused));
        }
        self.mock.verified += 1;
        (self.verified[member], self.last_verified) = (true, member);
        Ok(Verified::Ready)
    }

    fn slice(&mut self, arm: Arm, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.mock.slices += 1;
        self.mock.turns.push(arm);
        let count = self.counts.entry(arm).or_insert(0);
        *count += 1;
        let count = *count;
        let slice = match arm {
            Arm::Control(control) => self.control(self.beds()[control], count, length),
            Arm::Member(member) => self.member(member, count, [lead_in, length]),
        };
        if let Arm::Member(member) = arm {
            let (offered, received) = self.packets.entry(member).or_default();
            (*offered, *received) = (*offered + slice.offered, *received + slice.counted);
        }
        Ok(slice)
    }

    fn findings(&mut self, member: usize) -> Findings {
        let settings = &self.members[member];
        if settings.refuses == Some(true) {
            return Findings { events: vec!["it has no such table".into()], ..Findings::default() };
        }
        let (offered, received) = self.packets.get(&member).copied().unwrap_or_default();
        let [offered, received] = [offered, received].map(|packets| packets as f64);
        let counters = [("offered", offered), ("received", received), ("lost", offered - received)];
        let extra = settings.counter.map(|value| ("extra", value));
        let invalid = member == 0 && self.mock.panels <= settings.invalid_panels.unwrap_or(0);
        let family = if self.inet6 { "inet6" } else { "inet" };
        Findings {
            counters: counters
                .into_iter()
                .chain(extra)
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
            reasons: invalid
                .then_some(Validity::WrongFlows)
                .into_iter()
                .chain((settings.misroutes_in == Some(self.mock.panels)).then_some(Validity::Misrouted))
                .collect(),
            events: vec![format!("attached to {family}")],
        }
    }

    fn bed_findings(&mut self) -> Findings {
        Findings::default()
    }
}

fn bed(member: &MockSettings) -> f64 {
    member.bed.unwrap_or(1.0)
}

impl MockPanel<'_> {
    /// The speeds of the beds, in the order of the first member that has each, as a bench makes them.
    fn beds(&self) -> Vec<f64> {
        let mut beds: Vec<f64> = Vec::new();
        for bed in self.members.iter().map(bed) {
            beds.extend((!beds.contains(&bed)).then_some(bed));
        }
        beds
    }

    fn control(&self, bed: f64, count: u32, length: Duration) -> Slice {
        let rate = bed * CONTROL * self.machine(count) * (1.0 + 0.0005 * self.noise(100, count));
        slice(rate, rate, length)
    }

    fn member(&self, member: usize, count: u32, [lead_in, length]: [Duration; 2]) -> Slice {
        assert!(self.verified[member], "measured before it was verified");
        let settings = &self.members[member];
        let of_family = if self.inet6 { 0.9 } else { 1.0 };
        let of_copy = if member == self.last_verified { self.mock.machine.copy } else { 1.0 };
        // What the layout of memory does to this member in this block, and what each slice adds.
        let layout = 1.0 + 0.001 * self.noise(member, 0);
        let noise = 1.0 + 0.0005 * self.noise(member, count);
        let alone = self.hits(member, count, settings.disturbed.unwrap_or(0.0));
        let short = 1.5 * SHORTEST.as_secs_f64() / (lead_in + length).as_secs_f64();
        let warm = 1.0 - settings.short_costs.unwrap_or(0.0) * short;
        let own = of_family * of_copy * layout * noise * warm * if alone { 0.2 } else { 1.0 };
        let this = Some(self.mock.panels);
        let copy_stalls = member == self.last_verified && self.mock.machine.copy_stalls_in == this;
        let stalls = settings.stalls_in == this || copy_stalls;
        let rate = if stalls { 0.0 } else { settings.rate.unwrap_or(0.0) * own * self.machine(count) };
        match settings.load {
            Some(load) => slice(rate.min(load), load, length),
            None => slice(rate, rate, length),
        }
    }

    /// The speed of the machine in this slice, which all arms share.
    fn machine(&self, count: u32) -> f64 {
        let Machine { drift, disturbed, .. } = self.mock.machine;
        let speed = 1.0 + 0.1 * self.noise(200, 0) + drift * f64::from(count) / 1000.0;
        speed * if self.hits(300, count, disturbed) { 0.2 } else { 1.0 }
    }

    fn hits(&self, what: usize, count: u32, share: f64) -> bool {
        self.noise(400 + what, count).abs() < share
    }

    /// A number from −1 to 1 that depends on the panel's seed, on what it is for, and on a count.
    fn noise(&self, what: usize, count: u32) -> f64 {
        let mut bits = self.seed ^ (what as u64).rotate_left(40) ^ u64::from(count);
        for _ in 0..3 {
            bits = (bits ^ (bits >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn slice(rate: f64, offered: f64, length: Duration) -> Slice {
    let whole = (offered * length.as_secs_f64()).round().max(1.0);
    // Without a load the packets are those that the arm takes, and the time varies with its speed.
    let time = if offered > 0.0 { whole / offered } else { length.as_secs_f64() };
    let counted = (rate * time).round();
    Slice {
        counted: counted as u64,
        offered: whole as u64,
        time: Duration::from_secs_f64(time),
        lost_core: Duration::ZERO,
    }
}

/// Records the progress of a campaign.
#[derive(Debug, Default)]
pub struct ProgressLog {
    /// Panels of each goal.
    pub goals: Vec<usize>,
    pub estimated: Duration,
    /// Block, family and attempt of each panel.
    pub started: Vec<(u32, String, u32)>,
    pub shares: Vec<f64>,
    pub finished: usize,
}

impl Progress for ProgressLog {
    fn started(&mut self, panels: usize, estimated: Duration) {
        self.goals.push(panels);
        self.estimated = self.estimated.max(estimated);
    }

    fn panel_started(&mut self, panel: &PanelStart<'_>) {
        assert!(panel.block < panel.blocks);
        self.started.push((panel.block, panel.family.to_owned(), panel.attempt));
    }

    fn panel_advanced(&mut self, share: f64) {
        self.shares.push(share);
    }

    fn panel_finished(&mut self, _record: &PanelRecord, _remaining: Duration) {
        self.finished += 1;
    }
}
