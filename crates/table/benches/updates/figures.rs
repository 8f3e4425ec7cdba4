//! The results: rates of reader and writer.

use std::fmt;
use std::time::Duration;

use super::slices::Kind::{self, ChangesRead, ChangesUnread, Rests};
use super::support::statistics::{Interval, median};

/// The bound between near cores, which share a last-level cache, and far ones (`crates/bench/src/probe.rs`).
const NEAR_BELOW: Duration = Duration::from_nanos(200);

/// Rates by kind of slice: lookups and changes in a second.
#[derive(Default)]
pub struct Round {
    pub lookups: [f64; 3],
    pub changes: [f64; 3],
    /// The distance of the cores before and after.
    pub round_trips: [Duration; 2],
}

impl Round {
    /// Whether the cores were near; `None` if that changed during the round.
    fn near(&self) -> Option<bool> {
        let [before, after] = self.round_trips.map(|trip| trip < NEAR_BELOW);
        (before == after).then_some(before)
    }
}

/// The results of all rounds.
#[derive(Default)]
pub struct Figures {
    rounds: Vec<Round>,
    disturbed: usize,
    /// The time of each change of the table that is read.
    pub took: Vec<Duration>,
    pub rebuilds: usize,
    pub verified: usize,
}

impl Figures {
    /// Adds a round; `None` stands for a round in which other programs used the cores.
    pub fn count(&mut self, round: Option<Round>) {
        match round {
            Some(round) => self.rounds.push(round),
            None => self.disturbed += 1,
        }
    }

    /// The time in microseconds that this share of the changes did not exceed.
    fn change_took(&self, share: f64) -> f64 {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = (took.len() as f64 * share) as usize;
        took.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e6)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |near| Rounds(self.rounds.iter().filter(|round| round.near() == near).collect());
        writeln!(f, "  cores near to each other: {}", of(Some(true)))?;
        writeln!(f, "  cores far from each other: {}", of(Some(false)))?;
        let moved = of(None).0.len();
        writeln!(f, "  rounds left out: {} disturbed, {moved} in which a core moved", self.disturbed)?;
        let [half, p99, p999] = [0.5, 0.99, 0.999].map(|share| self.change_took(share));
        writeln!(f, "  one change: {half:.2} us median, {p99:.2} us p99, {p999:.2} us p99.9")?;
        write!(f, "  rebuilds: {}, keys verified afterwards: {}", self.rebuilds, self.verified)
    }
}

/// Rounds of one kind.
struct Rounds<'r>(Vec<&'r Round>);

impl Rounds<'_> {
    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.0.iter().map(|round| of(round)))
    }

    /// The reader's rate in one kind of slices as a share of its rate in another, for each round.
    fn share(&self, of: Kind, to: Kind) -> Interval {
        Interval::of_median(
            self.0.iter().map(|round| round.lookups[of as usize] / round.lookups[to as usize]),
        )
    }
}

impl fmt::Display for Rounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no rounds");
        }
        let trip = self.median(|round| round.round_trips[0].as_nanos() as f64);
        writeln!(f, "{} rounds, {trip:.0} ns from core to core and back", self.0.len())?;
        let changes = |kind: Kind| self.median(|round| round.changes[kind as usize]) / 1e6;
        let (read, unread) = (changes(ChangesRead), changes(ChangesUnread));
        writeln!(f, "    changes: {read:.2} M/s to the table that is read, {unread:.2} M/s to the other")?;
        let reader = |kind: Kind| self.median(|round| round.lookups[kind as usize]) / 1e6;
        let [rests, unread, read] = [Rests, ChangesUnread, ChangesRead].map(reader);
        write!(f, "    reader: {rests:.0} M lookups/s alone, {unread:.0} beside changes elsewhere, ")?;
        writeln!(f, "{read:.0} beside changes of its table")?;
        writeln!(f, "    its share, changes elsewhere / alone:        {}", self.share(ChangesUnread, Rests))?;
        writeln!(f, "    its share, changes of its table / alone:     {}", self.share(ChangesRead, Rests))?;
        write!(
            f,
            "    its share, changes of its table / elsewhere: {}",
            self.share(ChangesRead, ChangesUnread)
        )
    }
}
