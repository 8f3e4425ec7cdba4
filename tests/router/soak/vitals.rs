//! The memory, threads and descriptors of a process, and whether they grow.

use std::fs;
use std::time::Instant;

/// Memory may grow by this much between warm-up and end, however long the run is. Variations of the heap stay below it. In
/// half an hour, a leak of one byte per packet, of 500 per changed route or of a kilobyte per client exceeds it.
const GROWTH: f64 = (4 << 10) as f64;

/// The part of the time before the memory is judged: tables, arenas of the heap and rings reach their sizes in it.
const WARM_UP: f64 = 1.0 / 3.0;

/// The figures of a process at one moment; memory in KiB.
#[derive(Debug, Clone, Copy)]
pub struct Vitals {
    pub at: Instant,
    /// All resident memory.
    pub rss: f64,
    /// Private memory: heap, stacks, rings. (The share of the program's file, PSS, depends on other processes that run it.)
    pub anonymous: f64,
    pub threads: usize,
    pub descriptors: usize,
}

impl Vitals {
    pub fn of(process: u32) -> Vitals {
        let text =
            fs::read_to_string(format!("/proc/{process}/smaps_rollup")).expect("the program is running");
        let entries = |folder: &str| fs::read_dir(format!("/proc/{process}/{folder}")).unwrap().count();
        Vitals {
            at: Instant::now(),
            rss: field(&text, "Rss:"),
            anonymous: field(&text, "Anonymous:"),
            threads: entries("task"),
            descriptors: entries("fd"),
        }
    }
}

/// What the descriptors of a process are, and the names of its threads, each as often as there are such.
#[derive(Debug)]
pub struct Held(Vec<String>);

impl Held {
    pub fn by(process: u32) -> Held {
        let paths = |folder: &str| {
            let entries = fs::read_dir(format!("/proc/{process}/{folder}")).unwrap().flatten();
            entries.map(|entry| entry.path())
        };
        // Some end meanwhile.
        let descriptors = paths("fd").filter_map(|path| fs::read_link(path).ok());
        let threads = paths("task").filter_map(|path| fs::read_to_string(path.join("comm")).ok());
        let descriptors = descriptors.map(|target| target.display().to_string());
        Held(descriptors.chain(threads).collect())
    }

    /// What there was not before; the numbers of sockets count as differences.
    pub fn since(self, before: &Held) -> Vec<String> {
        let mut known = before.0.clone();
        let is_new = |held: &String| match known.iter().position(|one| one == held) {
            Some(at) => {
                known.swap_remove(at);
                false
            }
            None => true,
        };
        self.0.into_iter().filter(is_new).collect()
    }
}

fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The development of the memory after the warm-up, in KiB over the whole time after it.
#[derive(Debug)]
pub struct Trend {
    pub samples: usize,
    pub rss_growth: f64,
    pub anonymous_growth: f64,
    pub largest: f64,
}

impl Trend {
    pub fn of(samples: &[Vitals]) -> Trend {
        let steady = &samples[(samples.len() as f64 * WARM_UP) as usize..];
        let began = steady[0].at;
        let growth = |figure: fn(&Vitals) -> f64| {
            let points: Vec<(f64, f64)> =
                steady.iter().map(|one| ((one.at - began).as_secs_f64(), figure(one))).collect();
            slope(&points) * points.last().map_or(0.0, |last| last.0)
        };
        Trend {
            samples: steady.len(),
            rss_growth: growth(|one| one.rss),
            anonymous_growth: growth(|one| one.anonymous),
            largest: steady.iter().map(|one| one.rss).fold(0.0, f64::max),
        }
    }

    pub fn is_flat(&self) -> bool {
        self.rss_growth < GROWTH && self.anonymous_growth < GROWTH
    }

    pub fn tell(&self) {
        let Trend { samples, rss_growth, anonymous_growth, largest } = self;
        println!(
            "memory: at most {largest} KiB, grew by {rss_growth:.0} KiB ({anonymous_growth:.0} of its own) over {samples} samples"
        );
    }
}

/// Returns the median of the slopes between all pairs of points (Theil and Sen). A sample during the compilation of a
/// table is an outlier, which does not change it.
fn slope(points: &[(f64, f64)]) -> f64 {
    let pairs = points
        .iter()
        .enumerate()
        .flat_map(|(at, one)| points[at + 1..].iter().map(move |other| (one, other)));
    let mut slopes: Vec<f64> = pairs
        .filter(|(one, other)| other.0 > one.0)
        .map(|(one, other)| (other.1 - one.1) / (other.0 - one.0))
        .collect();
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
}

#[test]
fn a_slope_is_that_of_most_points() {
    let leak: Vec<(f64, f64)> = (0..50).map(|at| (f64::from(at), 3.0 * f64::from(at))).collect();
    assert_eq!(slope(&leak), 3.0);
    let unrest = |at: u32| if at.is_multiple_of(7) { 9000.0 } else { 100.0 };
    let steady: Vec<(f64, f64)> = (0..50).map(|at| (f64::from(at), unrest(at))).collect();
    assert_eq!(slope(&steady), 0.0);
    assert_eq!(slope(&[]), 0.0);
}
