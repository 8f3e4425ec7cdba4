//! Logs of netmap's pkt-gen, in the forms with and without bits, batches and space.

use fullview_lab::stats::median;

use crate::error::{LineError, Problem, at, whole};

/// The seconds of one log that count.
#[derive(Debug, Clone, PartialEq)]
pub struct PktGenLog {
    /// Seconds of pkt-gen's clock at its first line, which it prints modulo 1000.
    pub clock: f64,
    /// Packets per second, one for each second that counts, and zero where no packet came.
    pub rates: Vec<f64>,
}

/// netbenches leaves out this many lines at the start and at the end of a log, whatever they are.
const FIRST: usize = 15;
const LAST: usize = 10;
const EXPECTED: &str = "a log of pkt-gen -N";

pub fn parse(text: &str) -> Result<PktGenLog, LineError> {
    whole(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let Some(clock) = lines.iter().find_map(|line| clock(line)) else {
        return at(1, Problem::Foreign { expected: EXPECTED });
    };
    let counted = lines.get(FIRST..lines.len().saturating_sub(LAST)).unwrap_or_default();
    let mut rates = Vec::new();
    for (index, line) in counted.iter().enumerate() {
        rates.extend(rate(line, FIRST + index + 1)?);
    }
    match rates.iter().any(|rate| *rate > 0.0) {
        true => Ok(PktGenLog { clock, rates }),
        false if rates.is_empty() => at(lines.len(), Problem::TooShort),
        false => at(lines.len(), Problem::NoPackets),
    }
}

fn clock(line: &str) -> Option<f64> {
    let (clock, rest) = line.split_once(' ')?;
    rest.contains('[')
        .then(|| clock.parse().ok())
        .flatten()
        .filter(|clock: &f64| (0.0..1000.0).contains(clock))
}

/// The rate of a line.
fn rate(line: &str, number: usize) -> Result<Option<f64>, LineError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "main_thread", _, rate, unit, ..] = words[..] else { return Ok(None) };
    let parsed = rate.parse::<u64>().ok().filter(|_| unit == "pps");
    match parsed {
        Some(rate) => Ok(Some(rate as f64)),
        None => at(number, Problem::Number { token: format!("{rate} {unit}") }),
    }
}

impl PktGenLog {
    /// The value of the run, which leaves out the seconds without packets, as netbenches does.
    pub fn median(&self) -> f64 {
        let rates: Vec<f64> = self.rates.iter().copied().filter(|rate| *rate > 0.0).collect();
        median(&rates).unwrap_or(f64::NAN)
    }

    /// How many seconds had no packets.
    pub fn silent(&self) -> usize {
        self.rates.iter().filter(|rate| **rate == 0.0).count()
    }

    /// By how much the last quarter of the run differs from the first, as a part of its value.
    pub fn drift(&self) -> f64 {
        let quarter = self.rates.len().div_ceil(4);
        let [first, last] = [&self.rates[..quarter], &self.rates[self.rates.len() - quarter..]];
        median(last).zip(median(first)).map_or(0.0, |(last, first)| (last - first) / self.median())
    }
}
