//! A router's own share of the time, by subtraction of its bed's, on a machine whose clock is computed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullview_lab::{
    Archive, Arm, Bench, Experiment, Findings, Opening, Panel, PanelError, PanelRecord, PanelStart,
    PanelWork, Progress, Settings, Slice, SliceLimits, SubjectError, Verified, report,
};
use serde::{Deserialize, Serialize};

/// Packets of a slice.
const PACKETS: u64 = 1_000_000;

/// A router that needs so many nanoseconds for a packet, and drops some, on a bed that needs so many more.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Cost {
    router_ns: u64,
    bed_ns: u64,
    dropped_in_ten: u64,
}

impl Settings for Cost {
    fn over(self, _base: &Self) -> Self {
        self
    }
}

/// Makes panels in which every slice takes the time that its packets need. The machine is slower in every third block,
/// and in every second round.
#[derive(Default)]
struct VirtualBench {
    panels: u64,
}

struct VirtualPanel<'m> {
    members: &'m [Cost],
    beds: Vec<u64>,
    slowdown: u64,
    slices: BTreeMap<Arm, u64>,
}

impl Bench<Cost> for VirtualBench {
    fn panel(
        &mut self,
        members: &[Cost],
        _family: &str,
        _seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        self.panels += 1;
        let mut beds: Vec<u64> = members.iter().map(|member| member.bed_ns).collect();
        beds.sort_unstable();
        beds.dedup();
        let slowdown = if self.panels.is_multiple_of(3) { 3 } else { 1 };
        work(&mut VirtualPanel { members, beds, slowdown, slices: BTreeMap::new() })
    }

    fn conditions(&mut self) -> Vec<String> {
        Vec::new()
    }
}

impl Panel for VirtualPanel<'_> {
    fn controls(&self) -> usize {
        self.beds.len()
    }

    fn control_of(&self, member: usize) -> usize {
        self.beds.iter().position(|ns| *ns == self.members[member].bed_ns).unwrap()
    }

    fn subtracts(&self) -> bool {
        true
    }

    fn slice_limits(&self) -> SliceLimits {
        SliceLimits { shortest: Duration::from_micros(1), longest: Duration::from_secs(1) }
    }

    fn verify(&mut self, _member: usize) -> Result<Verified, SubjectError> {
        Ok(Verified::Ready)
    }

    fn slice(&mut self, arm: Arm, _lead_in: Duration, _length: Duration) -> Result<Slice, SubjectError> {
        let slices = self.slices.entry(arm).or_default();
        *slices += 1;
        let speed = self.slowdown * if slices.is_multiple_of(2) { 2 } else { 1 };
        let (ns, dropped) = match arm {
            Arm::Control(control) => (self.beds[control], 0),
            Arm::Member(member) => {
                let Cost { router_ns, bed_ns, dropped_in_ten } = self.members[member];
                (router_ns + bed_ns, dropped_in_ten)
            }
        };
        let time = Duration::from_nanos(PACKETS * ns * speed);
        Ok(Slice {
            counted: PACKETS / 10 * (10 - dropped),
            offered: PACKETS,
            time,
            lost_core: Duration::ZERO,
        })
    }

    fn findings(&mut self, _member: usize) -> Findings {
        Findings::default()
    }

    fn bed_findings(&mut self) -> Findings {
        Findings::default()
    }
}

struct Silent;

impl Progress for Silent {
    fn started(&mut self, _panels: usize, _estimated: Duration) {}
    fn panel_started(&mut self, _panel: &PanelStart<'_>) {}
    fn panel_advanced(&mut self, _share: f64) {}
    fn panel_finished(&mut self, _record: &PanelRecord, _remaining: Duration) {}
}

#[derive(Deserialize)]
struct Report {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    shares: Vec<Option<f64>>,
    values: Vec<f64>,
}

/// The rates of these routers: in their own share of the time, and of the whole loop, block by block.
fn measured(routers: &[Cost]) -> Vec<Cell> {
    let variants = routers.iter().enumerate().map(|(index, cost)| {
        let Cost { router_ns, bed_ns, dropped_in_ten } = cost;
        format!(
            "{{ name = \"r{index}\", label = \"r{index}\", set = {{ router_ns = {router_ns}, bed_ns = {bed_ns}, \
             dropped_in_ten = {dropped_in_ten} }} }}"
        )
    });
    let text = format!(
        "title = \"t\"\nruns = 6\nseed = 1\nfamilies = [\"inet\"]\nvariants = [{}]\n\
         window = {{ warmup_s = 0.0, measure_s = 0.02, slice_ms = 1.0 }}\n",
        variants.collect::<Vec<_>>().join(", ")
    );
    let (folder, experiment) = (tempfile::tempdir().unwrap(), Experiment::parse("t", &text).unwrap());
    let mut archive = Archive::open(folder.path(), &experiment, Opening::New).unwrap();
    let never = AtomicBool::new(false);
    fullview_lab::run(&experiment, &mut archive, &mut VirtualBench::default(), &mut Silent, &never).unwrap();
    let report: Report = serde_json::from_str(report(folder.path()).unwrap().json()).unwrap();
    report.cells
}

/// The share of each router in nanoseconds for a packet that came out, at the median machine speed, in every block.
fn shares(routers: &[Cost]) -> Vec<Vec<f64>> {
    let in_units_of_the_bed = |cell: &Cell| {
        assert_eq!((cell.shares.len(), cell.values.len()), (6, 6));
        cell.shares.iter().map(|rate| 1e9 / rate.unwrap()).collect()
    };
    measured(routers).iter().map(in_units_of_the_bed).collect()
}

fn cost(router_ns: u64, bed_ns: u64) -> Cost {
    Cost { router_ns, bed_ns, dropped_in_ten: 0 }
}

/// The machine's median speed is that of a round of either speed, so that a nanosecond counts √2 times.
fn assert_shares(routers: &[Cost], expected: &[f64]) {
    for (blocks, expected) in shares(routers).into_iter().zip(expected) {
        for found in blocks {
            let wanted = expected * 2f64.sqrt();
            assert!((found / wanted - 1.0).abs() < 1e-9, "{found} in place of {wanted}");
        }
    }
}

#[test]
fn every_delay_comes_out_whatever_the_speed_of_the_machine() {
    assert_shares(&[cost(10, 30), cost(20, 30), cost(40, 30)], &[10.0, 20.0, 40.0]);
}

#[test]
fn a_share_does_not_depend_on_what_its_bed_costs() {
    assert_shares(&[cost(10, 30), cost(10, 50), cost(10, 31)], &[10.0, 10.0, 10.0]);
}

#[test]
fn packets_that_a_router_drops_cost_it_time_and_count_for_nothing() {
    let dropping = Cost { dropped_in_ten: 2, ..cost(40, 30) };
    assert_shares(&[cost(40, 30), dropping], &[40.0, 50.0]);
}

#[test]
fn a_router_that_costs_nothing_has_no_share() {
    let cells = measured(&[cost(0, 30), cost(1, 30)]);
    assert!(cells[0].shares.iter().all(Option::is_none));
    assert!(cells[1].shares.iter().all(Option::is_some));
}
