//! What came out of the subtraction, beside what had to.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// The delays, in nanoseconds for each packet.
pub const DELAYS: [u32; 3] = [10, 20, 40];

/// The stated error: nanoseconds for each packet, and a part of what is to be found. The longer a router takes, the more
/// of what the bed has in its caches goes to other work on the machine, and the bed's time to get it back counts as the
/// router's. A bed that checks every packet has most to lose.
const STATED_NS: f64 = 1.0;
const STATED_PART: f64 = 0.05;
const STATED_PART_WHERE_ALL_IS_CHECKED: f64 = 0.15;

fn stated(bed: &str, ns: f64) -> f64 {
    let part = if bed == "check-all" { STATED_PART_WHERE_ALL_IS_CHECKED } else { STATED_PART };
    STATED_NS + part * ns
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
}

impl Figures {
    /// The figures of a report.
    pub fn of(report: &str) -> Self {
        let report: Report = serde_json::from_str(report).unwrap();
        let mut figures = Figures { beds: Vec::new(), whole: BTreeMap::new(), share: BTreeMap::new() };
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
        let own = self.share(bed, &format!("{router}-{word}-{ns}"));
        let without = match router {
            "forward" => self.share(bed, "forward").clone(),
            _ => vec![0.0; own.len()],
        };
        let alone = self.whole(bed, &format!("alone-{word}-{ns}"));
        let delay = own.iter().zip(&without).map(|(own, without)| own - without);
        Found { alone: middle(alone), errors: delay.zip(alone).map(|(delay, alone)| delay - alone).collect() }
    }

    /// The share of the forwarding loop on a bed less that on the usual one. The beds are panels of their own, so that
    /// only medians can be compared.
    fn moved(&self, bed: &str) -> f64 {
        middle(self.share(bed, "forward")) - middle(self.share(&self.beds[0], "forward"))
    }

    /// Whether every fenced delay comes out, and the share of the forwarding loop stays where it is, within the stated
    /// error.
    pub fn hold(&self) -> bool {
        self.beds.iter().all(|bed| {
            let usual = middle(self.share(&self.beds[0], "forward"));
            let found = ["pass", "forward"].map(|router| DELAYS.map(|ns| self.found(bed, router, true, ns)));
            found.as_flattened().iter().all(|found| found.error().abs() <= stated(bed, found.alone))
                && self.moved(bed).abs() <= stated(bed, usual)
        })
    }
}

/// One delay as the subtraction finds it.
struct Found {
    alone: f64,
    /// By block.
    errors: PerBlock,
}

impl Found {
    fn error(&self) -> f64 {
        middle(&self.errors)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.errors.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.errors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        write!(
            f,
            "{:8.2} {:8.2} {:+8.2} {least:+8.2} {most:+8.2}",
            self.alone,
            self.alone + self.error(),
            self.error()
        )
    }
}

fn middle(values: &[f64]) -> f64 {
    fullview_lab::stats::median(values).unwrap_or(f64::NAN)
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nns per packet            {:>8} {:>8} {:>8} {:>8} {:>8}",
            "alone", "found", "error", "least", "most"
        )?;
        for bed in &self.beds {
            writeln!(
                f,
                "{bed}: the bed alone, its forwarding loop, and what that is more: {}",
                self.of_bed(bed)
            )?;
            for (fenced, router) in [true, false]
                .into_iter()
                .flat_map(|fenced| ["pass", "forward"].map(|router| (fenced, router)))
            {
                for ns in DELAYS {
                    let name = format!("{router}, {} {ns}", word(fenced));
                    writeln!(f, "    {name:20} {}", self.found(bed, router, fenced, ns))?;
                }
            }
        }
        let held = if self.hold() { "held" } else { "NOT held" };
        let [part, all] = [STATED_PART, STATED_PART_WHERE_ALL_IS_CHECKED].map(|part| 100.0 * part);
        writeln!(
            f,
            "stated error of fenced delays, and of the share of the forwarding loop from bed to bed: {STATED_NS} ns and \
             {part} % ({all} % where every packet is checked): {held}"
        )
    }
}

impl Figures {
    fn of_bed(&self, bed: &str) -> String {
        let (whole, share) = (middle(self.whole(bed, "forward")), middle(self.share(bed, "forward")));
        format!(
            "{:.2}, {whole:.2}, {share:.2} ({:+.2} than on the usual bed)",
            whole - share,
            self.moved(bed)
        )
    }
}
