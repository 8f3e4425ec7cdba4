use super::FORMAT;
use super::message::{MAX_MESSAGE, MessageKind, put_message};
use super::tables::{ENTRIES, put_entry};
use crate::address_table::TableEntry;
use crate::fields::PutFields;
use crate::ruleset::{FormerRule, RuleSet};
use crate::state::{FilterWorker, RuleCounters, SourceImage, StateImage};

/// So many bytes are sent at once, or one message more.
const CHUNK: usize = 64 << 10;
/// A rule with a longer text is not recognized; its states stay without it.
const LONGEST_TEXT: usize = MAX_MESSAGE - 25;

/// Sends the tables of `set` and what its workers remember in chunks of bounded size, and returns how many states that are.
/// `interfaces` has the names of the interfaces by their numbers. An error of `send` ends it.
pub fn export<E>(
    set: &RuleSet,
    workers: &mut [&mut FilterWorker],
    now: u64,
    interfaces: &[String],
    send: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u32, E> {
    // Known flows have counts and times that their states lack.
    workers.iter_mut().for_each(|worker| worker.end_flows());
    let mut chunks = Chunks { bytes: Vec::with_capacity(2 * CHUNK), send };
    chunks.put(MessageKind::Format, |to| to.put(FORMAT.to_le_bytes()))?;
    put_rules(set, workers, &mut chunks)?;
    put_interfaces(interfaces, &mut chunks)?;
    put_tables(set, &mut chunks)?;
    // Several workers have none: only one enforces limits of sources.
    if let [worker] = workers {
        put_sources(worker, now as u32, &mut chunks)?;
    }
    let mut states = 0;
    for worker in workers {
        states += put_states(set, worker, now as u32, &mut chunks)?;
    }
    chunks.put(MessageKind::End, |_| {})?;
    chunks.flush()?;
    Ok(states)
}

/// Messages that wait until they are worth a call of `send`.
struct Chunks<S> {
    bytes: Vec<u8>,
    send: S,
}

impl<E, S: FnMut(&[u8]) -> Result<(), E>> Chunks<S> {
    fn put(&mut self, kind: MessageKind, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), E> {
        put_message(&mut self.bytes, kind, fill);
        if self.bytes.len() < CHUNK { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), E> {
        (self.send)(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

fn put_rules<E, S: FnMut(&[u8]) -> Result<(), E>>(
    set: &RuleSet,
    workers: &[&mut FilterWorker],
    chunks: &mut Chunks<S>,
) -> Result<(), E> {
    for (index, rule) in set.counted().enumerate() {
        let (packets, bytes) = RuleCounters::sum(workers.iter().map(|worker| &**worker.counters()), index);
        let FormerRule { number, gone, .. } = FormerRule::new(rule);
        let identity = &rule.identity()[..rule.identity().floor_char_boundary(LONGEST_TEXT)];
        chunks.put(MessageKind::Rule, |to| {
            to.put(packets.to_le_bytes());
            to.put(bytes.to_le_bytes());
            to.put(number.to_le_bytes());
            to.put(gone.0.to_le_bytes());
            to.put(gone.1.to_le_bytes());
            to.extend_from_slice(identity.as_bytes());
        })?;
    }
    Ok(())
}

fn put_interfaces<E, S: FnMut(&[u8]) -> Result<(), E>>(
    interfaces: &[String],
    chunks: &mut Chunks<S>,
) -> Result<(), E> {
    let mut names = interfaces.iter();
    names.try_for_each(|name| chunks.put(MessageKind::Interface, |to| to.extend_from_slice(name.as_bytes())))
}

/// The tables with names, since the other process cannot know their addresses by its rules.
fn put_tables<E, S: FnMut(&[u8]) -> Result<(), E>>(set: &RuleSet, chunks: &mut Chunks<S>) -> Result<(), E> {
    for named in set.named_tables().iter().filter(|table| table.name.len() <= LONGEST_TEXT) {
        let Some(table) = set.tables().get(usize::from(named.id.0)) else { continue };
        put_table(&named.name, table.entries(), chunks)?;
    }
    Ok(())
}

fn put_table<E, S: FnMut(&[u8]) -> Result<(), E>>(
    name: &str,
    entries: &[TableEntry],
    chunks: &mut Chunks<S>,
) -> Result<(), E> {
    chunks.put(MessageKind::Table, |to| {
        to.put((entries.len() as u32).to_le_bytes());
        to.extend_from_slice(name.as_bytes());
    })?;
    let mut pieces = entries.chunks(ENTRIES);
    pieces.try_for_each(|piece| {
        chunks.put(MessageKind::Entries, |to| piece.iter().for_each(|entry| put_entry(entry, to)))
    })
}

fn put_sources<E, S: FnMut(&[u8]) -> Result<(), E>>(
    worker: &FilterWorker,
    now: u32,
    chunks: &mut Chunks<S>,
) -> Result<(), E> {
    let mut sources = worker.sources().images();
    sources.try_for_each(|(number, source)| {
        chunks.put(MessageKind::Source, |to| put_source(number, &source, now, to))
    })
}

fn put_source(number: u32, source: &SourceImage, now: u32, to: &mut Vec<u8>) {
    let SourceImage { flow, rule, recent, window, idle_since } = source;
    to.put(number.to_le_bytes());
    to.put(flow.source.0.to_le_bytes());
    to.put(flow.destination.0.to_le_bytes());
    to.put(flow.source_port.to_le_bytes());
    to.put(flow.destination_port.to_le_bytes());
    to.put(flow.protocol.to_le_bytes());
    to.put(rule.to_le_bytes());
    to.put(recent.to_le_bytes());
    to.put(now.wrapping_sub(*window).to_le_bytes());
    to.put(idle_since.map_or(0, |since| now.wrapping_sub(since)).to_le_bytes());
}

fn put_states<E, S: FnMut(&[u8]) -> Result<(), E>>(
    set: &RuleSet,
    worker: &mut FilterWorker,
    now: u32,
    chunks: &mut Chunks<S>,
) -> Result<u32, E> {
    let mut count = 0;
    for id in worker.states.entries_in_order() {
        let Some(image) = living_state(set, worker, now, id) else { continue };
        chunks.put(MessageKind::State, |to| image.write(now, to))?;
        count += 1;
    }
    Ok(count)
}

/// The state of an entry, with the numbers of the current rules; `None` if the entry is free or the state is over.
fn living_state(set: &RuleSet, worker: &mut FilterWorker, now: u32, id: u32) -> Option<StateImage> {
    if !worker.states.get(id).0.is_used() {
        return None;
    }
    worker.settle(id);
    let is_over = set.has_expired(worker, id, now);
    let (hot, cold) = worker.states.get(id);
    (!is_over).then_some(StateImage { hot: *hot, cold: *cold })
}
