//! The slices: what the writer does at which time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fullview_table::{Address, Route, probe};

use super::figures::{Figures, Round};
use super::reader::Shared;
use super::support::pair::{self, Waiting};
use super::writer::Writer;

/// A round counts if both threads had their cores for all of each slice except this share. Time without the core does
/// not count in the rate of a thread.
const KEPT_OFF: f64 = 0.1;

/// What the writer does in a slice.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Rests,
    ChangesUnread,
    ChangesRead,
}

/// All kinds, in their order in a [`Round`].
const KINDS: [Kind; 3] = [Kind::Rests, Kind::ChangesUnread, Kind::ChangesRead];

/// The setup of a measurement.
pub struct Slices<'a, A: Address> {
    pub cores: &'a [usize],
    pub rounds: usize,
    pub length: Duration,
    pub routes: Vec<Route<A>>,
    pub keys: Vec<A>,
}

impl<A: Address> Slices<'_, A> {
    /// Measures one algorithm. The reader looks up in the table of `read`.
    pub fn measure(&self, mut read: Writer<A>, mut unread: Writer<A>) -> anyhow::Result<Figures> {
        let (shared, without_reader) = (Shared::new(read.fib()), Shared::new(unread.fib()));
        let (sender, receiver) = mpsc::channel();
        let mut figures = thread::scope(|scope| {
            scope.spawn(|| {
                pair::pin(self.cores.first());
                // A send fails only if the receiver has ended, and then the measurement is over.
                let _ = sender.send(Waiting::of_this_thread());
                shared.look_up(&self.keys);
            });
            pair::pin(self.cores.get(1));
            let mut writers = Writers { read: (&mut read, &shared), unread: (&mut unread, &without_reader) };
            let figures = receiver.recv().map_err(anyhow::Error::from);
            let figures = figures
                .and_then(|reader| self.all_rounds(&mut writers, &[reader, Waiting::of_this_thread()]));
            shared.end();
            figures
        })?;
        figures.rebuilds = read.rebuilds;
        figures.verified = read.verify()?.min(unread.verify()?);
        Ok(figures)
    }

    fn all_rounds(&self, writers: &mut Writers<'_, A>, waiting: &[Waiting; 2]) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        let mut before = writers.read.1.round_trip();
        for number in 0..self.rounds {
            let mut round = self.round(number as u64, writers, waiting, &mut figures.took)?;
            let after = writers.read.1.round_trip();
            round.iter_mut().for_each(|round| round.round_trips = [before, after]);
            figures.count(round);
            before = after;
        }
        Ok(figures)
    }

    /// Runs a slice of each kind in random order; `None` if other programs used the cores.
    fn round(
        &self,
        number: u64,
        writers: &mut Writers<'_, A>,
        waiting: &[Waiting; 2],
        took: &mut Vec<Duration>,
    ) -> anyhow::Result<Option<Round>> {
        let (mut round, mut undisturbed) = (Round::default(), true);
        for kind in in_random_order(number) {
            let before = waiting.each_ref().map(Waiting::so_far);
            let (start, looked_up) = (Instant::now(), writers.read.1.looked_up());
            let changes = writers.work(kind, self, took)?;
            let (lookups, length) = (writers.read.1.looked_up() - looked_up, start.elapsed());
            let on_core = [0, 1]
                .map(|thread| length.saturating_sub(waiting[thread].so_far() - before[thread]).as_secs_f64());
            round.lookups[kind as usize] = lookups as f64 / on_core[0];
            round.changes[kind as usize] = changes as f64 / on_core[1];
            undisturbed &= on_core.iter().all(|time| *time >= (1.0 - KEPT_OFF) * length.as_secs_f64());
        }
        Ok(undisturbed.then_some(round))
    }
}

fn in_random_order(round: u64) -> [Kind; 3] {
    let draws: Vec<u32> = probe::uniform(round + 100).take(KINDS.len()).collect();
    let mut kinds = KINDS;
    kinds.sort_by_key(|kind| draws[*kind as usize]);
    kinds
}

/// The two tables that change, each with its readers.
struct Writers<'w, A: Address> {
    read: (&'w mut Writer<A>, &'w Shared<A>),
    unread: (&'w mut Writer<A>, &'w Shared<A>),
}

impl<A: Address> Writers<'_, A> {
    /// Does the work of a slice; returns the number of changes. The time of each is kept for the table that is read.
    fn work(
        &mut self,
        kind: Kind,
        slices: &Slices<'_, A>,
        took: &mut Vec<Duration>,
    ) -> anyhow::Result<usize> {
        let mut times = Vec::new();
        match kind {
            Kind::Rests => thread::sleep(slices.length),
            Kind::ChangesUnread => {
                self.unread.0.flap(&slices.routes, self.unread.1, slices.length, &mut times)?;
            }
            Kind::ChangesRead => {
                self.read.0.flap(&slices.routes, self.read.1, slices.length, &mut times)?;
                took.extend(&times);
            }
        }
        Ok(times.len())
    }
}
