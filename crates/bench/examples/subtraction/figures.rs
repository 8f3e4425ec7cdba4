//! What came out of the subtraction, beside what had to.

use std::collections::BTreeMap;
use std::fmt;

use fullview_lab::MeasuredPanel;
use fullview_lab::stats::{Contrast, midmean};
use serde::Deserialize;

/// The delays, in nanoseconds for each packet.
pub const DELAYS: [u32; 3] = [10, 20, 40];

/// The stated error: nanoseconds for each packet, and a part of what is to be found.
const STATED_NS: f64 = 1.0;
const STATED_PART: f64 = 0.05;
/// Of each interval. They are many, so it is higher than usual.
const CONFIDENCE: f64 = 0.99;

fn stated(ns: f64) -> f64 {
    STATED_NS + STATED_PART * ns
}

pub fn word(fenced: bool) -> &'static str {
    if fenced { "fenced" } else { "loose" }
}

#[derive(Deserialize)]
struct Report {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    variant: String,
    family: String,
    /// Packets per second of the whole loop, block by block.
    values: Vec<f64>,
    /// The same in the router's own share of the time.
    shares: Vec<Option<f64>>,
}

/// Nanoseconds for each packet, block by block.
type PerBlock = Vec<f64>;

/// The figures of all beds.
pub struct Figures {
    beds: Vec<String>,
    whole: BTreeMap<(String, String), PerBlock>,
    share: BTreeMap<(String, String), PerBlock>,
    rounds: Vec<RoundTimes>,
}

/// The nanoseconds for each packet in every round of a panel, by variant; the control's have no name.
struct RoundTimes {
    bed: String,
    times: BTreeMap<String, Vec<f64>>,
}

impl RoundTimes {
    fn of(panel: &MeasuredPanel) -> Self {
        let MeasuredPanel { record, slices } = panel;
        let times = |arm| {
            let slices = slices.of(arm).map(Option::unwrap_or_default);
            slices.map(|slice| (slice.time - slice.lost_core).as_secs_f64() * 1e9 / slice.offered as f64)
        };
        // The copy of the baseline comes last and has its name.
        let members = (0..record.members.len() - 1)
            .map(|member| (record.members[member].variant.clone(), times(record.arm_of(member)).collect()));
        let control = (String::new(), times(0).collect());
        RoundTimes { bed: record.family.clone(), times: members.chain([control]).collect() }
    }

    /// The midmean of the differences within the rounds, without the machine's speed taken out.
    fn difference(&self, variant: &str, without: &str) -> f64 {
        let pairs = self.times[variant].iter().zip(&self.times[without]);
        let differences: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
        midmean(&differences).unwrap_or(f64::NAN)
    }

    fn alone(&self, variant: &str) -> f64 {
        midmean(&self.times[variant]).unwrap_or(f64::NAN)
    }
}

impl Figures {
    /// The figures of a report and of the panels that it was made from.
    pub fn of(report: &str, panels: &[MeasuredPanel]) -> Self {
        let report: Report = serde_json::from_str(report).unwrap();
        let rounds = panels.iter().filter(|panel| panel.record.is_valid()).map(RoundTimes::of).collect();
        let (whole, share) = (BTreeMap::new(), BTreeMap::new());
        let mut figures = Figures { beds: Vec::new(), whole, share, rounds };
        for cell in report.cells {
            let key = (cell.family.clone(), cell.variant);
            if !figures.beds.contains(&cell.family) {
                figures.beds.push(cell.family);
            }
            figures.whole.insert(key.clone(), cell.values.into_iter().map(|rate| 1e9 / rate).collect());
            let shares = cell.shares.into_iter().map(|rate| rate.map_or(0.0, |rate| 1e9 / rate));
            figures.share.insert(key, shares.collect());
        }
        figures
    }

    fn whole(&self, bed: &str, variant: &str) -> &PerBlock {
        &self.whole[&(bed.to_owned(), variant.to_owned())]
    }

    fn share(&self, bed: &str, variant: &str) -> &PerBlock {
        &self.share[&(bed.to_owned(), variant.to_owned())]
    }

    /// The delays of a kind of router on a bed, as the subtraction finds them.
    fn found(&self, bed: &str, router: &str, fenced: bool, ns: u32) -> Found {
        let word = word(fenced);
        let [delayed, alone] = [router, "alone"].map(|router| format!("{router}-{word}-{ns}"));
        let own = self.share(bed, &delayed);
        let (without, without_delay) = match router {
            "forward" => (self.share(bed, "forward").clone(), "forward"),
            _ => (vec![0.0; own.len()], ""),
        };
        let found = own.iter().zip(&without).map(|(own, without)| own - without).collect();
        let rounds = self.rounds.iter().filter(|panel| panel.bed == bed);
        let by_rounds = rounds.map(|panel| panel.difference(&delayed, without_delay) - panel.alone(&alone));
        Found { alone: self.whole(bed, &alone).clone(), found, by_rounds: by_rounds.collect() }
    }

    /// The share of the forwarding loop on a bed beside that on the usual one.
    fn moved(&self, bed: &str) -> Found {
        let [usual, here] = [&self.beds[0], bed].map(|bed| self.share(bed, "forward").clone());
        Found { alone: usual, found: here, by_rounds: Vec::new() }
    }

    /// Whether no fenced delay is proven to come out with more than the stated error, and the share of the forwarding
    /// loop is not proven to move by more.
    pub fn hold(&self) -> bool {
        self.beds.iter().all(|bed| {
            let found = ["pass", "forward"].map(|router| DELAYS.map(|ns| self.found(bed, router, true, ns)));
            let moved = self.moved(bed);
            !found.as_flattened().iter().chain([&moved]).any(|found| found.exceeds())
        })
    }
}

/// One delay as the subtraction finds it, block by block.
struct Found {
    alone: PerBlock,
    found: PerBlock,
    /// The errors of a subtraction within the rounds.
    by_rounds: PerBlock,
}

impl Found {
    fn alone(&self) -> f64 {
        middle(&self.alone)
    }

    fn error(&self) -> f64 {
        middle(&self.found) - self.alone()
    }

    /// The ends of the interval of the error; `None` if the noise is larger than the delay.
    fn interval(&self) -> Option<[f64; 2]> {
        let effect = Contrast::independent(&self.alone, &self.found).log_ratio(CONFIDENCE)?;
        Some([effect.low, effect.high].map(|end| end * self.alone()))
    }

    fn exceeds(&self) -> bool {
        let stated = stated(self.alone());
        self.interval().is_some_and(|[low, high]| low > stated || high < -stated)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (alone, found) = (self.alone(), middle(&self.found));
        write!(f, "{alone:8.2} {found:8.2} {:+8.2}", self.error())?;
        match self.interval() {
            Some([low, high]) => write!(f, " {low:+8.2} {high:+8.2}")?,
            None => write!(f, " {:>8} {:>8}", "–", "–")?,
        }
        if self.by_rounds.is_empty() { Ok(()) } else { write!(f, " {:+8.2}", middle(&self.by_rounds)) }
    }
}

fn middle(values: &[f64]) -> f64 {
    fullview_lab::stats::median(values).unwrap_or(f64::NAN)
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["alone", "found", "error", "from", "to", "rounds"].map(|head| format!("{head:>8}"));
        writeln!(f, "\nns per packet            {}", heads.join(" "))?;
        for bed in &self.beds {
            let [whole, share] =
                [self.whole(bed, "forward"), self.share(bed, "forward")].map(|of| middle(of));
            writeln!(f, "{bed}: {:.2} without a router", whole - share)?;
            writeln!(f, "    forward, usual, here {}", self.moved(bed))?;
            for (fenced, router) in [(true, "pass"), (true, "forward"), (false, "pass"), (false, "forward")] {
                for ns in DELAYS {
                    let name = format!("{router}, {} {ns}", word(fenced));
                    writeln!(f, "    {name:20} {}", self.found(bed, router, fenced, ns))?;
                }
            }
        }
        let held = if self.hold() { "not exceeded" } else { "EXCEEDED" };
        writeln!(
            f,
            "stated error of fenced delays, and of the share of the forwarding loop from bed to bed: {STATED_NS} ns and \
             {:.0} %: {held} ({:.0} % intervals)",
            100.0 * STATED_PART,
            100.0 * CONFIDENCE
        )
    }
}
