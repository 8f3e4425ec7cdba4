//! The handling of changes: one handler for each [`Outcome`].

use crate::addr::Address;
use crate::fib::Outcome;
use crate::rib::{Change, Rib};

use super::attachment::{Attachment, Lacking};
use super::event::{RebuildReason, TableEvent};
use super::settings::Time;

impl<A: Address> Attachment<A> {
    /// Passes changes to the algorithm that serves the table.
    pub(super) fn patch(&mut self, now: Time, rib: &Rib<A>, changes: &[Change<A>]) {
        let Some(current) = &mut self.current else { return };
        match current.instance.patch(rib, changes) {
            Outcome::Applied => self.applied(now, rib),
            Outcome::Batch => self.collect(now, changes),
            Outcome::Rebuild => self.needs_rebuild(now, RebuildReason::Requested, changes.len() as u64),
            Outcome::Error(reason) => self.ban(now, reason),
        }
    }

    /// Passes all collected changes to the algorithm. If it asks for still more of them, the table is compiled again.
    pub(super) fn deliver(&mut self, now: Time, rib: &Rib<A>) {
        let collected = self.lacking.take_if(|lacking| matches!(lacking, Lacking::Batch(_)));
        let Some(Lacking::Batch(changes)) = collected else { return };
        self.patch(now, rib, &changes);
        if matches!(self.lacking, Some(Lacking::Batch(_))) {
            self.needs_rebuild(now, RebuildReason::BatchFailed, 0);
        }
        if self.lacking.is_some() {
            self.delay.hurry(now, &self.settings);
        }
    }

    /// Records that the FIB answers like the RIB.
    pub(super) fn applied(&mut self, now: Time, rib: &Rib<A>) {
        self.lacking = None;
        self.delay.synced(now);
        self.publish(rib.generation());
    }

    /// Collects changes until the algorithm gets them as one batch.
    fn collect(&mut self, now: Time, changes: &[Change<A>]) {
        self.lacking = Some(Lacking::Batch(changes.to_vec()));
        self.delay.changed(now, changes.len() as u64, &self.settings);
    }

    /// Schedules a rebuild for the sake of so many changes.
    pub(super) fn needs_rebuild(&mut self, now: Time, reason: RebuildReason, changes: u64) {
        self.record(now, TableEvent::RebuildScheduled(reason));
        self.lacking = Some(Lacking::Rebuild);
        self.delay.changed(now, changes, &self.settings);
    }

    /// Bans the algorithm that serves this table; the next best takes over.
    pub(super) fn ban(&mut self, now: Time, reason: String) {
        self.record(now, TableEvent::Banned { reason });
        if let Some(banned) = self.algorithm() {
            self.failures.ban(banned);
            self.pinned = self.pinned.filter(|pinned| *pinned != banned);
        }
        self.needs_rebuild(now, RebuildReason::AlgorithmError, 0);
        self.delay.hurry(now, &self.settings);
        if self.usable().is_empty() {
            self.record(now, TableEvent::NoneUsable);
        }
    }

    /// Publishes the present FIB of the instance.
    pub(super) fn publish(&self, generation: u64) {
        if let Some(current) = &self.current {
            self.publisher.publish(current.instance.fib(), generation);
        }
    }

    /// Syncs the FIB without delay, and compiles it in this call whatever the settings.
    pub(super) fn sync(&mut self, now: Time, rib: &Rib<A>) {
        self.deliver(now, rib);
        if self.lacking.is_none() && self.current.is_some() {
            return;
        }
        if self.lacking.is_some() {
            self.record(now, TableEvent::SyncRebuild);
            self.delay.hurry(now, &self.settings);
        }
        // A job under way has fewer changes than the table compiled now.
        self.building = None;
        self.compile_here(now, rib);
    }
}
