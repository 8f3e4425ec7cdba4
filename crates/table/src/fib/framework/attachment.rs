//! One routing table and the algorithm that serves it.

use std::sync::Arc;

use crate::addr::Address;
use crate::fib::{CompileError, Fib, Instance};
use crate::rib::{Change, Rib};

use super::delay::Delay;
use super::evaluation::Evaluation;
use super::event::{Event, ModuleChange, TableEvent, TableLabel};
use super::job::Building;
use super::log::Log;
use super::modules::{Module, ModuleError, Modules, with, without};
use super::publish::{NoRoutes, Publisher, Reader, SharedReader};
use super::retry::Failures;
use super::settings::{Compile, Settings, Time};

/// Where a change comes from, which decides whether it may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The route of an interface's own network: routes through it follow at once, and need it.
    Interface,
    /// An operator configured it.
    Static,
    /// A routing protocol announced or withdrew it.
    Protocol,
}

impl Origin {
    fn waits(self) -> bool {
        self == Origin::Protocol
    }
}

/// One routing table of one family, and the algorithm that serves it. The caller keeps the RIB and passes it in the
/// state after the changes of each call.
pub struct Attachment<A: Address> {
    pub(super) number: u32,
    pub(super) settings: Arc<Settings>,
    pub(super) modules: Modules<A>,
    pub(super) current: Option<Attached<A>>,
    /// The changes that the FIB lacks; `None` if it answers like the RIB.
    pub(super) lacking: Option<Lacking<A>>,
    pub(super) delay: Delay,
    pub(super) evaluation: Evaluation,
    pub(super) failures: Failures,
    /// Why the last compile failed, unless one has succeeded since.
    pub(super) failure: Option<CompileError>,
    /// The module chosen by [`Self::force`].
    pub(super) pinned: Option<&'static str>,
    pub(super) building: Option<Building<A>>,
    /// The number of tables compiled so far.
    pub(super) instances: u64,
    pub(super) publisher: Publisher<A>,
    pub(super) log: Log,
}

/// The algorithm that serves a table, and its compiled table.
pub(super) struct Attached<A: Address> {
    pub(super) module: Module<A>,
    pub(super) instance: Box<dyn Instance<A>>,
    pub(super) number: u64,
}

/// How a FIB that lags behind its RIB can be synced.
pub(super) enum Lacking<A: Address> {
    /// With all these changes at once.
    Batch(Vec<Change<A>>),
    /// By compiling it again.
    Rebuild,
}

impl<A: Address> Lacking<A> {
    fn changed(&mut self, changes: &[Change<A>]) {
        if let Lacking::Batch(collected) = self {
            collected.extend_from_slice(changes);
        }
    }
}

impl<A: Address> Attachment<A> {
    /// A table to which nothing is attached before the first call with a RIB. Of equally preferred modules the first is
    /// chosen.
    pub fn new(now: Time, number: u32, modules: Modules<A>, settings: Arc<Settings>) -> Self {
        let publisher = Publisher::new(&NoRoutes::default());
        let mut table = Self::publishing(number, modules, settings, publisher);
        let modules = table.modules.iter();
        modules.for_each(|module| table.log.module(now, *module, ModuleChange::Registered));
        table
    }

    /// Like [`Self::new`], for one of many tables, whose modules are logged elsewhere.
    pub(super) fn publishing(
        number: u32,
        modules: Modules<A>,
        settings: Arc<Settings>,
        publisher: Publisher<A>,
    ) -> Self {
        Attachment {
            number,
            settings,
            modules,
            current: None,
            lacking: None,
            delay: Delay::default(),
            evaluation: Evaluation::default(),
            failures: Failures::default(),
            failure: None,
            pinned: None,
            building: None,
            instances: 0,
            publisher,
            log: Log::default(),
        }
    }

    /// Follows a RIB that now holds `changes`. Routes of interfaces and static routes are in the FIB when this returns,
    /// others when the delay policy permits.
    pub fn changed(&mut self, now: Time, rib: &Rib<A>, changes: &[Change<A>], origin: Origin) {
        if !changes.is_empty() {
            self.follow(now, rib, changes);
        }
        if !origin.waits() {
            self.sync(now, rib);
        }
        self.tick(now, rib);
    }

    fn follow(&mut self, now: Time, rib: &Rib<A>, changes: &[Change<A>]) {
        let count = changes.len() as u64;
        self.evaluation.changed(now, count, &self.settings);
        if let Some(building) = &mut self.building {
            building.changed(changes);
        }
        match &mut self.lacking {
            Some(lacking) => {
                lacking.changed(changes);
                self.delay.changed(now, count, &self.settings);
            }
            None => self.patch(now, rib, changes),
        }
    }

    /// Does the work that is due. With [`Compile::Elsewhere`] the caller has to compile what [`Self::job`] returns.
    pub fn tick(&mut self, now: Time, rib: &Rib<A>) {
        if matches!(self.lacking, Some(Lacking::Batch(_))) && self.delay.is_due(now) {
            self.deliver(now, rib);
        }
        if self.settings.compile == Compile::Here {
            self.compile_here(now, rib);
        }
    }

    /// When [`Self::tick`], or [`Self::job`] after it, has work to do; `None` before the next change.
    pub fn next_deadline(&self) -> Option<Time> {
        let batch = self.delay.due().filter(|_| matches!(self.lacking, Some(Lacking::Batch(_))));
        // While a table is compiled no other is compiled.
        let compile = self.compile_deadline().filter(|_| self.building.is_none());
        batch.into_iter().chain(compile).min()
    }

    /// Chooses at once the algorithm that suits the table best, and compiles the table again if the RIB has changes
    /// that were not reported, such as a whole table that was loaded. The RIB's generation reveals them, so it has to
    /// be the same RIB always: take the routes of another one with [`Rib::replace`]. The error is why the FIB lags
    /// behind.
    pub fn evaluate(&mut self, now: Time, rib: &Rib<A>) -> Result<(), CompileError> {
        if self.current.is_some() && rib.generation() != self.publisher.generation() {
            self.lacking = Some(Lacking::Rebuild);
            self.delay.hurry(now, &self.settings);
        }
        if let Some(building) = &mut self.building {
            // The changes reported since the job was given out may not be all.
            building.since = None;
        }
        self.evaluation.ask(now);
        self.tick(now, rib);
        let served = self.current.is_some() && self.lacking.is_none();
        self.failure.clone().filter(|_| !served).map_or(Ok(()), Err)
    }

    /// Makes the module of that name serve the table whatever its preference, until [`Self::release`], and ends a ban
    /// on it. The present FIB serves until this module has compiled the table.
    pub fn force(&mut self, now: Time, rib: &Rib<A>, module: &str) -> Result<(), ModuleError> {
        let module = self.modules.iter().find(|known| known.name() == module).ok_or(ModuleError::Unknown)?;
        self.failures.forget(module.name());
        self.pinned = Some(module.name());
        self.evaluation.ask(now);
        self.tick(now, rib);
        Ok(())
    }

    /// Lets the preference choose again.
    pub fn release(&mut self, now: Time, rib: &Rib<A>) {
        self.pinned = None;
        self.evaluation.ask(now);
        self.tick(now, rib);
    }

    /// Uses other settings from now on.
    pub fn configure(&mut self, now: Time, rib: &Rib<A>, settings: Arc<Settings>) {
        self.settings = settings;
        self.evaluation.ask(now);
        self.tick(now, rib);
    }

    /// Adds a module to those that may be chosen.
    pub fn attach(&mut self, now: Time, rib: &Rib<A>, module: Module<A>) -> Result<(), ModuleError> {
        let modules = with(&self.modules, module)?;
        self.log.module(now, module, ModuleChange::Registered);
        self.use_modules(now, rib, modules);
        Ok(())
    }

    /// Removes a module. If it serves the table, it does so until another has compiled the table.
    pub fn detach(&mut self, now: Time, rib: &Rib<A>, module: &str) -> Result<(), ModuleError> {
        let (modules, gone) = without(&self.modules, module)?;
        self.log.module(now, gone, ModuleChange::Unregistered);
        self.use_modules(now, rib, modules);
        Ok(())
    }

    /// Replaces the modules.
    pub(super) fn use_modules(&mut self, now: Time, rib: &Rib<A>, modules: Modules<A>) {
        let gone = self.modules.iter().filter(|old| modules.iter().all(|new| new.name() != old.name()));
        for module in gone {
            self.failures.forget(module.name());
            self.pinned = self.pinned.filter(|pinned| *pinned != module.name());
        }
        self.modules = modules;
        self.evaluation.ask(now);
        self.tick(now, rib);
    }

    /// Makes a reader of the table for one worker.
    pub fn reader(&self) -> Reader<A> {
        self.publisher.reader()
    }

    /// Makes a reader for many threads that cannot each have their own.
    pub fn shared_reader(&self) -> SharedReader<A> {
        self.publisher.shared_reader()
    }

    /// Ends the table but leaves its readers their FIB. If the table is dropped instead, readers find no route any
    /// more.
    pub fn retire(mut self) {
        self.publisher = Publisher::new(&NoRoutes::default());
    }

    /// The FIB that readers use; it has no routes before a module is attached.
    pub fn fib(&self) -> Arc<dyn Fib<A>> {
        self.publisher.fib()
    }

    /// The generation of the RIB up to which the FIB has synced; it does not change while the FIB lags behind.
    pub fn generation(&self) -> u64 {
        self.publisher.generation()
    }

    /// The name of the algorithm that serves the table.
    pub fn algorithm(&self) -> Option<&'static str> {
        self.current.as_ref().map(|current| current.module.name())
    }

    /// The module chosen by [`Self::force`].
    pub fn pinned(&self) -> Option<&'static str> {
        self.pinned
    }

    /// Whether the FIB answers like the RIB of the last call.
    pub fn is_synced(&self) -> bool {
        self.current.is_some() && self.lacking.is_none()
    }

    /// Why the last compile failed, unless one has succeeded since.
    pub fn failure(&self) -> Option<&CompileError> {
        self.failure.as_ref()
    }

    /// Why the last compile by the module of that name failed, unless it has succeeded since.
    pub fn failure_of(&self, module: &str) -> Option<&CompileError> {
        self.failures.error(module)
    }

    /// The newest events of the table.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Logs an event of this table.
    pub(super) fn record(&mut self, now: Time, what: TableEvent) {
        let attached = self.current.as_ref().map(|current| (current.module.name(), current.number));
        let table = TableLabel { family: A::FAMILY, number: self.number, attached };
        self.log.push(now, Event::Table { table, what });
    }
}

/// Workers that still hold a [`Reader`] find no route in a dropped table.
impl<A: Address> Drop for Attachment<A> {
    fn drop(&mut self) {
        self.publisher.withdraw();
    }
}
