//! Compiling a table: when, with which module, and how the result is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::addr::Address;
use crate::fib::selection::choose;
use crate::fib::{CompileError, Instance, Outcome};
use crate::rib::{Change, Rib};

use super::attachment::{Attached, Attachment, Lacking};
use super::event::{RebuildReason, TableEvent};
use super::job::{Building, Built, Job};
use super::modules::Module;
use super::settings::Time;

/// The shortest delay before a module is tried again: without one, a module that always fails would be tried at the
/// same moment without end.
const SHORTEST_RETRY: Duration = Duration::from_millis(1);

/// The number of the next job, of all tables together: a table that is removed and made again must not take the result of a
/// job that was given out before. [`Attachment::compile_here`] has no job, and the number 0.
static JOBS: AtomicU64 = AtomicU64::new(1);

/// A compiled table, and the generation of the RIB that it was compiled from.
struct Compiled<A: Address> {
    module: Module<A>,
    instance: Box<dyn Instance<A>>,
    generation: u64,
}

impl<A: Address> Compiled<A> {
    /// Brings the table up to the present RIB, if it can take the changes made since; `None` if these were too many.
    fn catch_up(&mut self, rib: &Rib<A>, since: Option<Vec<Change<A>>>) -> Outcome {
        match since {
            _ if self.generation == rib.generation() => Outcome::Applied,
            // A batch is asked for once: the next call is taken as one, however small it is.
            Some(changes) => match self.instance.patch(rib, &changes) {
                Outcome::Batch => self.instance.patch(rib, &changes),
                outcome => outcome,
            },
            None => Outcome::Rebuild,
        }
    }
}

impl<A: Address> Attachment<A> {
    /// Returns a job if the table has to be compiled now and no job is under way. [Offer](Self::offer) its result;
    /// until then there is no other job.
    pub fn job(&mut self, now: Time, rib: &Arc<Rib<A>>) -> Option<Job<A>> {
        if self.building.is_some() {
            return None;
        }
        let module = self.wanted(now, rib)?;
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        self.building = Some(Building::new(number));
        Some(Job { module, rib: Arc::clone(rib), number })
    }

    /// Takes a compiled table. It patches the changes made since the job was given out into it, or compiles the table
    /// again later. A table with fewer changes than the FIB that serves is dropped.
    pub fn offer(&mut self, now: Time, rib: &Rib<A>, built: Built<A>) {
        let Some(building) = self.building.take_if(|building| building.number == built.number) else {
            return;
        };
        self.take(now, rib, built, building.since);
        self.tick(now, rib);
    }

    /// Compiles until nothing is due any more: a module that fails is held back, and the next best is tried.
    pub(super) fn compile_here(&mut self, now: Time, rib: &Rib<A>) {
        while self.building.is_none()
            && let Some(module) = self.wanted(now, rib)
        {
            let (result, generation) = (module.compile(rib), rib.generation());
            self.take(now, rib, Built { result, module, generation, number: 0 }, None);
        }
    }

    fn take(&mut self, now: Time, rib: &Rib<A>, built: Built<A>, since: Option<Vec<Change<A>>>) {
        match built.result {
            Ok(instance) => {
                self.failures.forget(built.module.name());
                self.failure = None;
                let compiled = Compiled { module: built.module, instance, generation: built.generation };
                self.compiled(now, rib, compiled, since);
            }
            Err(error) => self.failed(now, built.module, error),
        }
    }

    /// When the table may have to be compiled. A table that waits for a held module has no deadline of its own.
    pub(super) fn compile_deadline(&self) -> Option<Time> {
        let sync = match (&self.lacking, &self.current) {
            (Some(Lacking::Rebuild), _) => self.delay.due(),
            (_, None) => Some(Time::ZERO),
            _ => None,
        };
        let sync = sync.filter(|_| !self.usable().is_empty());
        [sync, self.evaluation.due(), self.failures.next()].into_iter().flatten().min()
    }

    /// The module to compile the table with, if that is due.
    fn wanted(&mut self, now: Time, rib: &Rib<A>) -> Option<Module<A>> {
        let is_due = |time: Option<Time>| time.is_some_and(|time| time <= now);
        let rebuild = matches!(self.lacking, Some(Lacking::Rebuild)) && self.delay.is_due(now);
        let asked = is_due(self.evaluation.due()) || is_due(self.failures.next());
        if !(rebuild || asked || self.current.is_none()) {
            return None;
        }
        self.failures.set_free(now);
        self.evaluation.answered();
        let best = self.best(rib)?;
        (rebuild || self.algorithm() != Some(best.name())).then_some(best)
    }

    /// The modules that may be tried: the pinned one, or all while that one is held back.
    pub(super) fn usable(&self) -> Vec<Module<A>> {
        let allowed = self.modules.iter().copied().filter(|module| self.failures.allow(module.name()));
        let allowed: Vec<Module<A>> = allowed.collect();
        let pinned = allowed.iter().copied().find(|module| self.pinned == Some(module.name()));
        pinned.map_or(allowed, |pinned| vec![pinned])
    }

    /// The best module that may be tried. The attached module has no advantage while it is held back.
    fn best(&self, rib: &Rib<A>) -> Option<Module<A>> {
        let usable = self.usable();
        let attached = usable.iter().copied().find(|module| self.algorithm() == Some(module.name()));
        choose(&self.settings.preferences, &usable, attached, &rib.summary())
    }

    fn compiled(
        &mut self,
        now: Time,
        rib: &Rib<A>,
        mut compiled: Compiled<A>,
        since: Option<Vec<Change<A>>>,
    ) {
        let is_newer = self.current.is_none() || compiled.generation > self.generation();
        match compiled.catch_up(rib, since) {
            Outcome::Applied => {
                self.install(now, compiled);
                self.applied(now, rib);
            }
            Outcome::Rebuild | Outcome::Batch if is_newer => {
                let generation = compiled.generation;
                self.install(now, compiled);
                self.publish(generation);
                self.delay.synced(now);
                let changes = rib.generation().saturating_sub(generation);
                self.needs_rebuild(now, RebuildReason::Changed, changes);
            }
            Outcome::Rebuild | Outcome::Batch => {
                self.record(now, TableEvent::Stale { module: compiled.module.name() });
            }
            Outcome::Error(reason) => {
                let module = compiled.module.name();
                self.record(now, TableEvent::SetupFailed { module, reason });
                self.failures.ban(module);
                self.evaluation.ask(now);
            }
        }
    }

    fn install(&mut self, now: Time, Compiled { module, instance, .. }: Compiled<A>) {
        if self.algorithm().is_some_and(|name| name != module.name()) {
            self.record(now, TableEvent::Switched { to: module.name() });
        }
        self.instances += 1;
        self.current = Some(Attached { module, instance, number: self.instances });
    }

    /// Handles a failed compile: the present FIB serves on. The module is held back for some time, so that the next
    /// best is tried if the FIB lags behind.
    fn failed(&mut self, now: Time, module: Module<A>, error: CompileError) {
        let delay = self.settings.retry_delay.max(SHORTEST_RETRY);
        let failures = self.failures.failed(now, module.name(), delay, error.clone());
        self.failure = Some(error.clone());
        self.record(now, TableEvent::CompileFailed { module: module.name(), failures, error });
    }
}
