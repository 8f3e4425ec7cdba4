use std::collections::HashMap;
use std::sync::Arc;

use super::message::{MessageKind, ReceivedMessage, next_message};
use super::rules::ImportedRules;
use super::tables::ImportedTables;
use super::{FORMAT, ImportError};
use crate::address::Address;
use crate::address_table::AddressTable;
use crate::fields::Fields;
use crate::packet::NO_INTERFACE;
use crate::rule::TableId;
use crate::ruleset::RuleSet;
use crate::state::{ColdState, FilterWorker, FlowKey, SourceImage, StateImage, known_rule};

/// Interfaces have numbers of 16 bits.
const MOST_INTERFACES: usize = 1 << 16;

/// What became of the states of another process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// States that go on.
    pub states: u32,
    /// Those among them whose rule is gone.
    pub without_rule: u32,
    /// States that the table, or that of the sources, had no room for.
    pub no_room: u32,
    /// States that hold on one interface only, which is gone.
    pub no_interface: u32,
    /// States that translate, while there are several workers: their answers might come to another one.
    pub translated: u32,
    /// Tables of addresses that go on.
    pub tables: u32,
}

/// What came from another process.
#[derive(Debug)]
pub struct Imported {
    pub summary: ImportSummary,
    /// The tables that came whole, for those that the rules of this process leave open.
    pub tables: Vec<(TableId, Arc<AddressTable>)>,
    /// Whether all messages have come. What came in the others stays.
    pub result: Result<(), ImportError>,
}

/// Takes the states of another process, message by message.
pub struct StateImport<'a> {
    set: &'a RuleSet,
    workers: StateOwners<'a>,
    interface_of: &'a dyn Fn(&str) -> Option<u16>,
    now: u32,
    /// The rules, interfaces and sources of this process, by the numbers that the other one has for them.
    rules: ImportedRules<'a>,
    interfaces: Vec<Option<u16>>,
    sources: HashMap<u32, RestoredSource>,
    tables: ImportedTables<'a>,
    progress: ImportProgress,
    /// The beginning of a message whose rest must come.
    pending: Vec<u8>,
    /// The bytes of whole messages.
    taken: u64,
    summary: ImportSummary,
}

/// The workers that states go on in, none of which has states yet.
pub struct StateOwners<'a> {
    /// The first one gets the counts of rules, and sources if there are no others.
    pub first: &'a mut FilterWorker,
    pub others: Vec<&'a mut FilterWorker>,
    /// The number of the worker that judges packets between two addresses; zero is the first.
    pub owner: &'a dyn Fn(Address, Address) -> usize,
}

impl<'a> StateOwners<'a> {
    /// One worker that owns all states.
    pub fn only(worker: &'a mut FilterWorker) -> StateOwners<'a> {
        StateOwners { first: worker, others: Vec::new(), owner: &|_, _| 0 }
    }

    fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    fn of(&mut self, image: &StateImage) -> &mut FilterWorker {
        let key = image.hot.key();
        match (self.owner)(key.source, key.destination).checked_sub(1) {
            Some(other) if other < self.others.len() => self.others[other],
            _ => self.first,
        }
    }
}

/// A source of the other process in the table of this one.
#[derive(Clone, Copy, Debug)]
struct RestoredSource {
    place: u32,
    /// When its last state ended, if none of its states goes on.
    idle_since: u32,
}

/// How far the messages have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImportProgress {
    Nothing,
    Begun,
    Ended,
}

impl<'a> StateImport<'a> {
    /// An import into workers of these rules. `interface_of` says which number an interface has here.
    pub fn new(
        set: &'a RuleSet,
        workers: StateOwners<'a>,
        interface_of: &'a dyn Fn(&str) -> Option<u16>,
    ) -> StateImport<'a> {
        StateImport {
            set,
            workers,
            interface_of,
            now: 0,
            rules: ImportedRules::new(set),
            interfaces: Vec::new(),
            sources: HashMap::new(),
            tables: ImportedTables::new(set),
            progress: ImportProgress::Nothing,
            pending: Vec::new(),
            taken: 0,
            summary: ImportSummary::default(),
        }
    }

    /// Takes further bytes, which have come at this time.
    ///
    /// # Errors
    /// They are no messages of this format. The states that came before stay; no further bytes may follow.
    pub fn feed(&mut self, now: u64, bytes: &[u8]) -> Result<(), ImportError> {
        self.now = now as u32;
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let mut rest = &pending[..];
        while let Some(message) = next_message(rest).map_err(|_| self.damaged())? {
            rest = &rest[message.length..];
            self.take(message)?;
        }
        let whole = pending.len() - rest.len();
        pending.drain(..whole);
        self.pending = pending;
        Ok(())
    }

    /// Ends the import, also after an error.
    pub fn finish(mut self) -> Imported {
        self.rules.recognize(self.workers.first.counters());
        let StateImport { workers, sources, tables, progress, taken, mut summary, .. } = self;
        // While they were taken, each source counted one state more, so that none ended before its states had come.
        let release = |source: RestoredSource| workers.first.release_source(source.place, source.idle_since);
        sources.into_values().for_each(release);
        let tables = tables.finish();
        summary.tables = tables.len() as u32;
        let is_whole = matches!(progress, ImportProgress::Ended);
        let result = if is_whole { Ok(()) } else { Err(ImportError::EndsEarly(taken)) };
        Imported { summary, tables, result }
    }

    fn damaged(&self) -> ImportError {
        ImportError::Damaged(self.taken)
    }

    fn take(&mut self, message: ReceivedMessage<'_>) -> Result<(), ImportError> {
        let ReceivedMessage { kind, fields, length } = message;
        let taken = match (self.progress, kind) {
            (ImportProgress::Nothing, MessageKind::Format) => return self.begin(fields, length),
            (ImportProgress::Begun, kind) if kind != MessageKind::Entries && !self.tables.is_whole() => None,
            (ImportProgress::Begun, MessageKind::Rule) => self.rules.take(fields),
            (ImportProgress::Begun, MessageKind::Interface) => self.take_interface(fields),
            (ImportProgress::Begun, MessageKind::Table) => self.tables.begin(fields),
            (ImportProgress::Begun, MessageKind::Entries) => self.tables.take(fields),
            (ImportProgress::Begun, MessageKind::Source) => self.take_source(fields),
            (ImportProgress::Begun, MessageKind::State) => self.take_state(fields),
            (ImportProgress::Begun, MessageKind::End) => {
                self.progress = ImportProgress::Ended;
                Some(())
            }
            _ => None,
        };
        taken.ok_or_else(|| self.damaged())?;
        self.taken += length as u64;
        Ok(())
    }

    fn begin(&mut self, mut fields: Fields<'_>, length: usize) -> Result<(), ImportError> {
        let format = fields.u32().ok_or_else(|| self.damaged())?;
        if format != FORMAT {
            return Err(ImportError::OtherFormat(format));
        }
        self.progress = ImportProgress::Begun;
        self.taken += length as u64;
        Ok(())
    }

    fn take_interface(&mut self, fields: Fields<'_>) -> Option<()> {
        let number = (self.interface_of)(fields.text()?);
        (self.interfaces.len() < MOST_INTERFACES).then(|| self.interfaces.push(number))
    }

    fn take_source(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let number = fields.u32()?;
        let mut source = read_source(&mut fields, self.now)?;
        fields.end()?;
        if self.workers.are_several() {
            return Some(());
        }
        let worker = &mut *self.workers.first;
        let (rule, timeouts) = self.rules.recognize(worker.counters()).rule(source.rule, 0);
        source.rule = rule;
        let idle_since = source.idle_since.unwrap_or(self.now);
        let stay = self.set.source_timeout(timeouts.into());
        if let Some(place) = worker.restore_source(&source, stay)
            && let Some(before) = self.sources.insert(number, RestoredSource { place, idle_since })
        {
            worker.release_source(before.place, before.idle_since);
        }
        Some(())
    }

    fn take_state(&mut self, mut fields: Fields<'_>) -> Option<()> {
        let mut image = StateImage::read(&mut fields, self.now)?;
        fields.end()?;
        let ColdState { rule, timeouts, .. } = image.cold;
        (image.cold.rule, image.cold.timeouts) =
            self.rules.recognize(self.workers.first.counters()).rule(rule, timeouts);
        let interface = self.interfaces.get(usize::from(image.cold.interface)).copied().flatten();
        image.cold.interface = interface.unwrap_or(NO_INTERFACE);
        if image.hot.is_if_bound() && interface.is_none() {
            self.summary.no_interface += 1;
        } else if self.workers.are_several() && image.is_translated() {
            self.summary.translated += 1;
        } else if self.find_source(&mut image) && self.workers.of(&image).restore(&image) {
            self.summary.states += 1;
            self.summary.without_rule += u32::from(known_rule(image.cold.rule).is_none());
        } else {
            self.summary.no_room += 1;
        }
        Some(())
    }

    /// Gives a state the number that its source has here. `false` if there was no room for the source.
    fn find_source(&self, image: &mut StateImage) -> bool {
        let Some(number) = image.source() else { return true };
        if self.workers.are_several() {
            image.forget_source();
            return true;
        }
        let place = self.sources.get(&number);
        place.into_iter().for_each(|source| image.set_source(source.place));
        place.is_some()
    }
}

fn read_source(fields: &mut Fields<'_>, now: u32) -> Option<SourceImage> {
    let flow = FlowKey {
        source: Address(fields.u128()?),
        destination: Address(fields.u128()?),
        source_port: fields.u16()?,
        destination_port: fields.u16()?,
        protocol: fields.u8()?,
    };
    let (rule, recent) = (fields.u32()?, fields.u32()?);
    let (window, idle_since) = (now.wrapping_sub(fields.u32()?), Some(now.wrapping_sub(fields.u32()?)));
    Some(SourceImage { flow, rule, recent, window, idle_since })
}
