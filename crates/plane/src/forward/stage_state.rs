//! What the stages of the loop leave to each other within one burst.

use fullview_table::group::GroupReader;

use super::keys::{BurstPositions, TableKeys};
use super::port_links::PortLinks;
use super::redirect::{MAX_CANDIDATES, RedirectCandidate};
use super::route_cache::RouteCacheCounters;
use super::simd::ParserIsa;
use super::vlan::RemovedTags;
use crate::counters::Counters;
use crate::view::View;

/// The results of each stage for the next one, and the worker's own readers of the tables and groups of a view.
pub(super) struct StageState {
    pub tables: Vec<TableKeys>,
    pub groups: GroupReader,
    pub links: PortLinks,
    /// Packets that the fast parser left to the slow one.
    pub exceptions: BurstPositions,
    pub tags: RemovedTags,
    pub redirects: Vec<RedirectCandidate>,
    pub counters: Counters,
    /// Whether the parser requests the tables' memory: not where no packet of the burst before was looked up, as the filter knew all
    /// flows, so that this memory does not drive theirs out of the caches.
    pub prefetches: bool,
    /// What the parser uses.
    pub isa: ParserIsa,
    /// Destinations that each route cache has room for, 0 without caches, and what caches of older views counted.
    cache_entries: usize,
    older_caches: RouteCacheCounters,
}

impl StageState {
    pub fn new(view: &View) -> StageState {
        let parts = view.parts();
        StageState {
            tables: parts.tables.iter().map(TableKeys::new).collect(),
            groups: parts.groups.reader(),
            links: PortLinks::default(),
            exceptions: BurstPositions::NONE,
            tags: RemovedTags::default(),
            redirects: Vec::with_capacity(MAX_CANDIDATES),
            counters: Counters::new(parts.interfaces.len()),
            prefetches: true,
            isa: ParserIsa::best(),
            cache_entries: 0,
            older_caches: RouteCacheCounters::default(),
        }
    }

    pub fn set_route_cache(&mut self, entries: usize) {
        self.cache_entries = entries;
        if entries > 0 {
            self.tables.iter_mut().for_each(|table| {
                table.inet.set_cache(entries);
                table.inet6.set_cache(entries);
            });
        }
    }

    /// What all route caches counted; nothing without them.
    pub fn route_cache_counters(&self) -> Option<RouteCacheCounters> {
        (self.cache_entries > 0).then(|| self.cached_so_far())
    }

    fn cached_so_far(&self) -> RouteCacheCounters {
        let mut sum = self.older_caches;
        for table in &self.tables {
            sum += table.inet.cache_counters();
            sum += table.inet6.cache_counters();
        }
        sum
    }

    /// Replaces the readers by those of another view and keeps the counts. The loop allocates only here.
    #[cold]
    pub fn follow(&mut self, view: &View) {
        let mut counters = Counters::new(view.parts().interfaces.len());
        counters.add(&self.counters);
        let (entries, older_caches) = (self.cache_entries, self.cached_so_far());
        let links = std::mem::take(&mut self.links);
        *self = StageState { counters, older_caches, isa: self.isa, links, ..StageState::new(view) };
        self.set_route_cache(entries);
    }

    /// Takes the newest groups and FIBs of the view, the groups first, as a lookup does.
    pub fn catch_up(&mut self) {
        self.groups.groups();
        self.tables.iter_mut().for_each(TableKeys::catch_up);
    }

    /// Forgets the burst before.
    pub fn clear(&mut self) {
        self.tables.iter_mut().for_each(TableKeys::clear);
        self.exceptions.clear();
        self.tags.clear();
        self.redirects.clear();
    }
}
