//! A neighbour on a shared machine: it uses memory and the shared cache in bursts of random lengths, beside a campaign.
//!
//!     cargo run --release -p fullview-bench --example neighbour -- --seconds 120
//!
//! A burst walks a buffer that is larger than the caches: by its seed either in order, which takes memory bandwidth, or at
//! random, which takes lines of the shared cache from others. Bursts and pauses have exponentially distributed lengths,
//! so that most are short, and some last several times the mean. The program ends by itself.

// An example fails by panicking.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Parser;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Words in a cache line.
const LINE: usize = 8;
/// Lines touched between two readings of the clock: a few microseconds.
const LINES_PER_CLOCK_READING: usize = 256;
const MIB: usize = 1 << 20;

#[derive(Parser)]
#[command(about = "Uses memory and the shared cache in bursts of random lengths, and ends by itself")]
struct Args {
    /// MiB of memory that bursts walk
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    mib: u64,
    /// Mean length of a burst in milliseconds
    #[arg(long, default_value_t = 300.0, value_parser = milliseconds)]
    on_ms: f64,
    /// Mean length of a pause in milliseconds
    #[arg(long, default_value_t = 700.0, value_parser = milliseconds)]
    off_ms: f64,
    /// Seconds until the program ends
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// What the lengths and the kinds of bursts follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The processor to run on; the system chooses without it
    #[arg(long)]
    core: Option<usize>,
}

const MEANS: RangeInclusive<f64> = 1.0..=10_000.0;

fn milliseconds(text: &str) -> Result<f64, String> {
    let mean = text.parse::<f64>().ok().filter(|mean| MEANS.contains(mean));
    mean.ok_or_else(|| format!("give {} to {} milliseconds", MEANS.start(), MEANS.end()))
}

fn main() {
    let args = Args::parse();
    if let Some(id) = args.core {
        assert!(core_affinity::set_for_current(core_affinity::CoreId { id }), "cannot run on processor {id}");
    }
    let mut random = ChaCha8Rng::seed_from_u64(args.seed);
    let mut memory = Memory { words: vec![1; args.mib as usize * MIB / size_of::<u64>()], at: 1 };
    let (end, mut bursts, mut busy, mut lines) =
        (Instant::now() + Duration::from_secs(args.seconds), 0, Duration::ZERO, 0);
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        let (length, at_random) = (exponential(args.on_ms, &mut random), random.random_bool(0.5));
        let started = Instant::now();
        lines += memory.burst(length.min(left), at_random);
        (bursts, busy) = (bursts + 1, busy + started.elapsed());
        let left = end.saturating_duration_since(Instant::now());
        sleep(exponential(args.off_ms, &mut random).min(left));
    }
    let touched = lines as f64 * (LINE * size_of::<u64>()) as f64 / MIB as f64;
    println!(
        "{bursts} bursts in {} s, {:.1} s in all, {:.0} MiB/s in them",
        args.seconds,
        busy.as_secs_f64(),
        touched / busy.as_secs_f64()
    );
}

fn exponential(mean_ms: f64, random: &mut ChaCha8Rng) -> Duration {
    let uniform: f64 = random.random();
    Duration::from_secs_f64(-(1.0 - uniform).ln() * mean_ms / 1e3)
}

/// A buffer, and the place where the last burst ended.
struct Memory {
    words: Vec<u64>,
    at: u64,
}

impl Memory {
    /// Changes lines for about that long; returns their number.
    fn burst(&mut self, length: Duration, at_random: bool) -> u64 {
        let (started, mut lines) = (Instant::now(), 0);
        while started.elapsed() < length {
            for _ in 0..LINES_PER_CLOCK_READING {
                self.touch_next(at_random);
            }
            lines += LINES_PER_CLOCK_READING as u64;
        }
        lines
    }

    /// A random walk is a linear congruential generator's (Knuth's MMIX), whose places do not depend on what is read, so
    /// that many lines are under way at once.
    fn touch_next(&mut self, at_random: bool) {
        let next = match at_random {
            true => self.at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
            false => self.at.wrapping_add(1 << 32),
        };
        self.at = next;
        // The upper half: the lower bits of such a generator repeat early.
        let line = (next >> 32) as usize % (self.words.len() / LINE);
        let word = &mut self.words[line * LINE];
        *word = black_box(*word + 1);
    }
}
