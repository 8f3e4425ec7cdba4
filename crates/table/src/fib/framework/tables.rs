//! Many tables by number, as in a router with VRFs: thousands of tables, most of them idle.
//!
//! An idle table is an entry of a hash map and the data that its readers share. RIB, framework and compiled table are
//! made with the first route. A tick reads only tables with a deadline, in the order of their deadlines.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::addr::Address;
use crate::fib::registry::Registered;
use crate::rib::{Change, Rib};

use super::attachment::{Attachment, Origin};
use super::event::ModuleChange;
use super::job::{Built, Job};
use super::log::{Log, LogEntry};
use super::modules::{Module, ModuleError, Modules, with, without};
use super::publish::{NoRoutes, Publisher, Reader, SharedReader};
use super::settings::{Settings, Time};

/// The tables of both families.
pub struct Tables {
    /// IPv4.
    pub inet: FamilyTables<u32>,
    /// IPv6.
    pub inet6: FamilyTables<u128>,
}

/// There is no table of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no routing table {0}")]
pub struct NoSuchTable(pub u32);

/// Why the modules of a table could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is no such table.
    #[error(transparent)]
    Table(#[from] NoSuchTable),
    /// The change of modules is refused.
    #[error(transparent)]
    Module(#[from] ModuleError),
}

impl Tables {
    /// Tables of both families, none at first, whose modules are all registered algorithms except the oracle.
    pub fn new(now: Time, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        Tables {
            inet: FamilyTables::new(now, &modules(), Arc::clone(&settings)),
            inet6: FamilyTables::new(now, &modules(), settings),
        }
    }

    /// Makes table `number` of both families, if it does not exist.
    pub fn create(&mut self, number: u32) {
        self.inet.create(number);
        self.inet6.create(number);
    }

    /// Removes table `number`; its readers find no route any more.
    pub fn remove(&mut self, number: u32) -> Result<(), NoSuchTable> {
        self.inet.remove(number).and(self.inet6.remove(number))
    }

    /// Uses other settings from now on.
    pub fn configure(&mut self, now: Time, settings: Settings) {
        let settings = Arc::new(settings);
        self.inet.configure(now, Arc::clone(&settings));
        self.inet6.configure(now, settings);
    }

    /// Does the work that is due in all tables.
    pub fn tick(&mut self, now: Time) {
        self.inet.tick(now);
        self.inet6.tick(now);
    }

    /// When the next work is due in any table.
    pub fn next_deadline(&self) -> Option<Time> {
        self.inet.next_deadline().into_iter().chain(self.inet6.next_deadline()).min()
    }
}

/// All algorithms of a family except the oracle, which is the first.
fn modules<A: Registered>() -> Vec<Module<A>> {
    A::ALGORITHMS.iter().copied().skip(1).collect()
}

/// The tables of one family.
pub struct FamilyTables<A: Address> {
    modules: Modules<A>,
    settings: Arc<Settings>,
    tables: FxHashMap<u32, NumberedTable<A>>,
    /// The deadlines of tables with work to do, and their numbers.
    deadlines: BTreeSet<(Time, u32)>,
    no_routes: NoRoutes<A>,
    log: Log,
}

struct NumberedTable<A: Address> {
    publisher: Publisher<A>,
    /// The parts that a table has from its first route on.
    active: Option<Box<Active<A>>>,
}

struct Active<A: Address> {
    rib: Arc<Rib<A>>,
    attachment: Attachment<A>,
    /// The deadline under which it is listed.
    deadline: Option<Time>,
}

impl<A: Address> FamilyTables<A> {
    /// Tables of one family, none at first.
    pub fn new(now: Time, modules: &[Module<A>], settings: Arc<Settings>) -> Self {
        let mut log = Log::default();
        modules.iter().for_each(|module| log.module(now, *module, ModuleChange::Registered));
        FamilyTables {
            modules: modules.into(),
            settings,
            tables: FxHashMap::default(),
            deadlines: BTreeSet::new(),
            no_routes: NoRoutes::default(),
            log,
        }
    }

    /// Makes a table, if it does not exist.
    pub fn create(&mut self, number: u32) {
        let no_routes = &self.no_routes;
        let empty = || NumberedTable { publisher: Publisher::new(no_routes), active: None };
        self.tables.entry(number).or_insert_with(empty);
    }

    /// Removes a table; its readers find no route any more.
    pub fn remove(&mut self, number: u32) -> Result<(), NoSuchTable> {
        let table = self.tables.remove(&number).ok_or(NoSuchTable(number))?;
        if let Some(deadline) = table.active.and_then(|active| active.deadline) {
            self.deadlines.remove(&(deadline, number));
        }
        Ok(())
    }

    /// The number of tables.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Makes a reader of a table for one worker.
    pub fn reader(&self, number: u32) -> Result<Reader<A>, NoSuchTable> {
        self.tables.get(&number).map(|table| table.publisher.reader()).ok_or(NoSuchTable(number))
    }

    /// Makes a reader for many workers, from which each can make its own.
    pub fn shared_reader(&self, number: u32) -> Result<SharedReader<A>, NoSuchTable> {
        self.tables.get(&number).map(|table| table.publisher.shared_reader()).ok_or(NoSuchTable(number))
    }

    /// The numbers of all tables, in no order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.tables.keys().copied()
    }

    /// The routes of a table; `None` before the first.
    pub fn rib(&self, number: u32) -> Option<&Rib<A>> {
        Some(&*self.active(number)?.rib)
    }

    /// The framework's state of a table; `None` before its first route.
    pub fn attachment(&self, number: u32) -> Option<&Attachment<A>> {
        Some(&self.active(number)?.attachment)
    }

    fn active(&self, number: u32) -> Option<&Active<A>> {
        self.tables.get(&number)?.active.as_deref()
    }

    /// Applies one change or many at once. Changes without effect are ignored.
    pub fn apply(
        &mut self,
        now: Time,
        number: u32,
        changes: &[Change<A>],
        origin: Origin,
    ) -> Result<(), NoSuchTable> {
        self.with(number, |active| {
            let rib = Arc::make_mut(&mut active.rib);
            let changes: Vec<Change<A>> =
                changes.iter().copied().filter(|change| rib.apply(*change) != change.next_hop).collect();
            active.attachment.changed(now, &active.rib, &changes, origin);
        })
    }

    /// Makes a module serve a table whatever its preference.
    pub fn force(&mut self, now: Time, number: u32, module: &str) -> Result<(), TableError> {
        Ok(self.with(number, |active| active.attachment.force(now, &active.rib, module))??)
    }

    /// Lets the preference choose for a table again.
    pub fn release(&mut self, now: Time, number: u32) -> Result<(), NoSuchTable> {
        self.with(number, |active| active.attachment.release(now, &active.rib))
    }

    /// Adds a module to one table.
    pub fn attach_to(&mut self, now: Time, number: u32, module: Module<A>) -> Result<(), TableError> {
        Ok(self.with(number, |active| active.attachment.attach(now, &active.rib, module))??)
    }

    /// Removes a module from one table.
    pub fn detach_from(&mut self, now: Time, number: u32, module: &str) -> Result<(), TableError> {
        Ok(self.with(number, |active| active.attachment.detach(now, &active.rib, module))??)
    }

    /// Adds a module to all tables.
    pub fn attach(&mut self, now: Time, module: Module<A>) -> Result<(), ModuleError> {
        self.modules = with(&self.modules, module)?;
        self.log.module(now, module, ModuleChange::Registered);
        self.each_active(|attachment, rib| {
            if let Ok(modules) = with(&attachment.modules, module) {
                attachment.use_modules(now, rib, modules);
            }
        });
        Ok(())
    }

    /// Removes a module from all tables; refused if a table has no other.
    pub fn detach(&mut self, now: Time, module: &str) -> Result<(), ModuleError> {
        let (modules, gone) = without(&self.modules, module)?;
        let mut attachments =
            self.tables.values().filter_map(|table| Some(&table.active.as_ref()?.attachment));
        if attachments.any(|attachment| without(&attachment.modules, module).err() == Some(ModuleError::Last))
        {
            return Err(ModuleError::Last);
        }
        self.modules = modules;
        self.log.module(now, gone, ModuleChange::Unregistered);
        self.each_active(|attachment, rib| {
            if let Ok((modules, _)) = without(&attachment.modules, module) {
                attachment.use_modules(now, rib, modules);
            }
        });
        Ok(())
    }

    /// Uses other settings from now on.
    pub fn configure(&mut self, now: Time, settings: Arc<Settings>) {
        self.settings = Arc::clone(&settings);
        self.each_active(|attachment, rib| attachment.configure(now, rib, Arc::clone(&settings)));
    }

    fn each_active(&mut self, mut act: impl FnMut(&mut Attachment<A>, &Rib<A>)) {
        for (number, table) in &mut self.tables {
            if let Some(active) = &mut table.active {
                act(&mut active.attachment, &active.rib);
                active.schedule(*number, &mut self.deadlines);
            }
        }
    }

    /// Does the work that is due.
    pub fn tick(&mut self, now: Time) {
        for number in self.due(now) {
            let ticked = self.with(number, |active| active.attachment.tick(now, &active.rib));
            debug_assert!(ticked.is_ok(), "every deadline belongs to a table");
        }
    }

    /// When the next work is due, for [`Self::tick`] or [`Self::jobs`].
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn due(&self, now: Time) -> Vec<u32> {
        self.deadlines
            .iter()
            .take_while(|(deadline, _)| *deadline <= now)
            .map(|(_, number)| *number)
            .collect()
    }

    /// Returns a job for each table to be compiled elsewhere, with its number.
    pub fn jobs(&mut self, now: Time) -> Vec<(u32, Job<A>)> {
        let due = self.due(now).into_iter();
        let job = |number| {
            Some((number, self.with(number, |active| active.attachment.job(now, &active.rib)).ok()??))
        };
        due.filter_map(job).collect()
    }

    /// Takes a table that was compiled elsewhere. The result for a removed table is dropped.
    pub fn offer(&mut self, now: Time, number: u32, built: Built<A>) -> Result<(), NoSuchTable> {
        self.with(number, |active| active.attachment.offer(now, &active.rib, built))
    }

    /// Runs `act` on a table, which is made active, and updates its deadline.
    fn with<T>(&mut self, number: u32, act: impl FnOnce(&mut Active<A>) -> T) -> Result<T, NoSuchTable> {
        let table = self.tables.get_mut(&number).ok_or(NoSuchTable(number))?;
        let (modules, settings) = (&self.modules, &self.settings);
        let publisher = &table.publisher;
        let active = table.active.get_or_insert_with(|| {
            let (modules, settings) = (Arc::clone(modules), Arc::clone(settings));
            let attachment = Attachment::publishing(number, modules, settings, publisher.share());
            Box::new(Active { rib: Arc::default(), attachment, deadline: None })
        });
        let done = act(active);
        active.schedule(number, &mut self.deadlines);
        Ok(done)
    }

    /// The newest events of the modules and of all tables, in the order of time.
    pub fn log(&self) -> Vec<LogEntry> {
        let tables = self.tables.values().filter_map(|table| table.active.as_ref());
        let entries = tables.flat_map(|active| active.attachment.log().iter());
        let mut all: Vec<LogEntry> = self.log.iter().chain(entries).cloned().collect();
        all.sort_by_key(|entry| entry.at);
        all
    }
}

impl<A: Address> Active<A> {
    fn schedule(&mut self, number: u32, deadlines: &mut BTreeSet<(Time, u32)>) {
        let next = self.attachment.next_deadline();
        if next == self.deadline {
            return;
        }
        let before = std::mem::replace(&mut self.deadline, next);
        before.map(|before| deadlines.remove(&(before, number)));
        next.map(|next| deadlines.insert((next, number)));
    }
}
