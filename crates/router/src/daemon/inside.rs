//! What those who ask the router's thread find.

use std::time::Duration;

use crate::follow::Statistics;
use crate::host::HostCounters;
use crate::mirror::Mirror;
use fullview_table::Address;
use fullview_table::fib::framework::FamilyTables;

use super::alone::Answers;
use super::show::{Counting, Named, Snapshot};
use crate::config::Live;

/// The router as its own thread sees it.
pub struct Inside<'a> {
    pub(super) now: Duration,
    pub(super) mirror: &'a mut Mirror,
    pub(super) algorithm: &'a mut Option<String>,
    pub(super) counting: &'a dyn Counting,
    /// `None` where no kernel is followed.
    pub(super) statistics: Option<Statistics>,
    /// The host, where no kernel is one.
    pub(super) answers: Option<&'a mut Answers>,
}

impl Inside<'_> {
    /// Tables, next hops, neighbours, views.
    pub fn mirror(&self) -> &Mirror {
        self.mirror
    }

    /// How the kernel is followed, if there is one.
    pub fn statistics(&self) -> Option<Statistics> {
        self.statistics
    }

    /// What each worker has counted, or each processor in a program in the kernel.
    pub fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        self.counting.snapshots()
    }

    /// What a program in the kernel has counted, by name; nothing where there is none.
    pub fn counted_by_program(&self) -> anyhow::Result<Named> {
        self.counting.named()
    }

    /// What the host has done, where no kernel is one.
    pub fn host(&self) -> Option<(HostCounters, u64)> {
        self.answers.as_ref().map(|answers| (answers.counters(), answers.lost()))
    }

    /// What it did not forward of what came in by each interface, by reason.
    pub fn not_forwarded_by_program(&self) -> anyhow::Result<Vec<Named>> {
        self.counting.named_by_interface()
    }

    /// Goes by another configuration from now on. Workers see it with their next burst.
    pub fn reconfigure(&mut self, live: Live) {
        self.mirror.set_policies(live.policies);
        if let (Some(answers), Some(plan)) = (&mut self.answers, &live.plan) {
            answers.adopt(self.now, self.mirror, plan);
        }
        self.mirror.commit(self.now);
        // The host is never behind the FIBs that workers have.
        self.answers.iter_mut().for_each(|answers| _ = answers.follow(self.now, self.mirror));
        let tables = self.mirror.tables_mut();
        tables.configure(self.now, live.settings);
        if *self.algorithm != live.algorithm {
            release(self.now, &mut tables.inet);
            release(self.now, &mut tables.inet6);
        }
        // The router's thread has the tables served by it before it does anything else.
        *self.algorithm = live.algorithm;
    }
}

/// Lets preference choose again.
fn release<A: Address>(now: Duration, tables: &mut FamilyTables<A>) {
    let pinned = |number: &u32| tables.attachment(*number).is_some_and(|table| table.pinned().is_some());
    let numbers: Vec<u32> = tables.numbers().filter(pinned).collect();
    for number in numbers {
        // The table is there: its number was just read.
        let _ = tables.release(now, number);
    }
}
