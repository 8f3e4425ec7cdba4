//! What becomes of a change: one handler for each [`Outcome`].

use crate::addr::Address;
use crate::fib::Outcome;
use crate::rib::{Change, Rib};

use super::attachment::{Attachment, Lacking};
use super::event::{RebuildReason, TableEvent};
use super::settings::Time;

impl<A: Address> Attachment<A> {
    /// Hands changes to the algorithm at work.
    pub(super) fn patch(&mut self, now: Time, rib: &Rib<A>, changes: &[Change<A>]) {
        let Some(current) = &mut self.current else { return };
        match current.instance.patch(rib, changes) {
            Outcome::Applied => self.applied(now, rib),
            Outcome::Batch => self.gather(now, changes),
            Outcome::Rebuild => self.needs_rebuild(now, RebuildReason::Requested, changes.len() as u64),
            Outcome::Error(reason) => self.ban(now, reason),
        }
    }

    /// Hands over all changes that were gathered. An algorithm that asks for still more of them gets none: it is
    /// compiled again.
    pub(super) fn deliver(&mut self, now: Time, rib: &Rib<A>) {
        let gathered = self.lacking.take_if(|lacking| matches!(lacking, Lacking::Batch(_)));
        let Some(Lacking::Batch(changes)) = gathered else { return };
        self.patch(now, rib, &changes);
        if matches!(self.lacking, Some(Lacking::Batch(_))) {
            self.needs_rebuild(now, RebuildReason::BatchFailed, 0);
        }
        if self.lacking.is_some() {
            self.delay.hurry(now, &self.settings);
        }
    }

    /// The FIB answers like the RIB.
    pub(super) fn applied(&mut self, now: Time, rib: &Rib<A>) {
        self.lacking = None;
        self.delay.synced(now);
        self.publish(rib.generation());
    }

    /// More changes will come before it is worth the algorithm's while.
    fn gather(&mut self, now: Time, changes: &[Change<A>]) {
        self.lacking = Some(Lacking::Batch(changes.to_vec()));
        self.delay.changed(now, changes.len() as u64, &self.settings);
    }

    /// The table is to be compiled again for the sake of so many changes.
    pub(super) fn needs_rebuild(&mut self, now: Time, reason: RebuildReason, changes: u64) {
        self.record(now, TableEvent::RebuildScheduled(reason));
        self.lacking = Some(Lacking::Rebuild);
        self.delay.changed(now, changes, &self.settings);
    }

    /// The algorithm at work is of no use to this table; the next best takes over.
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

    /// Hands readers what the instance has now.
    pub(super) fn publish(&self, generation: u64) {
        if let Some(current) = &self.current {
            self.publisher.publish(current.instance.fib(), generation);
        }
    }

    /// Brings the FIB up to date without delay, compiling here whatever the settings say.
    pub(super) fn sync(&mut self, now: Time, rib: &Rib<A>) {
        self.deliver(now, rib);
        if self.lacking.is_none() && self.current.is_some() {
            return;
        }
        if self.lacking.is_some() {
            self.record(now, TableEvent::SyncRebuild);
            self.delay.hurry(now, &self.settings);
        }
        // A job under way knows less than what is compiled now.
        self.building = None;
        self.compile_here(now, rib);
    }
}
