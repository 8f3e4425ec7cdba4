//! Waits until all FIBs have followed the removal of routes, then frees the next hops and groups that the routes used.

use std::collections::BTreeSet;

use fullview_table::fib::framework::{FamilyTables, Tables};
use fullview_table::{Address, NextHop};

use super::next_hops::Released;
use super::routing::Routing;

/// The generations of the RIBs at one moment, by family and table.
struct Generations {
    inet: Vec<(u32, u64)>,
    inet6: Vec<(u32, u64)>,
}

/// Next hops and groups that no route uses any more, but FIBs may.
struct Unused {
    /// All FIBs have to reach these.
    since: Generations,
    /// Tables that did not have all changes then. A generation of theirs says something once they have had them.
    lacking: BTreeSet<u32>,
    next_hops: Vec<Released>,
    groups: Vec<NextHop>,
}

/// What waits for the FIBs.
#[derive(Default)]
pub(super) struct Reclaim(Vec<Unused>);

impl Reclaim {
    /// These tables are gone, and with them their FIBs. A table that is made with the same number begins anew.
    pub fn forget(&mut self, tables: &[u32]) {
        let stays = |(number, _): &(u32, u64)| !tables.contains(number);
        for Unused { since, lacking, .. } in self.0.iter_mut().filter(|_| !tables.is_empty()) {
            since.inet.retain(stays);
            since.inet6.retain(stays);
            lacking.retain(|number| !tables.contains(number));
        }
    }

    /// Frees what no FIB leads to any more.
    pub fn follow(&mut self, routing: &mut Routing) {
        let (next_hops, groups) =
            (routing.sets.next_hops.take_released(), routing.sets.take_released_groups());
        let lacking = routing.lacking_changes();
        self.0.iter_mut().for_each(|unused| unused.follow(&lacking, &routing.tables));
        if !(next_hops.is_empty() && groups.is_empty()) {
            self.0.push(Unused { since: Generations::of(&routing.tables), lacking, next_hops, groups });
        }
        for unused in self.0.extract_if(.., |unused| unused.is_free(&routing.tables)) {
            routing.sets.free(unused.next_hops, unused.groups);
        }
    }
}

impl Unused {
    /// The FIBs of tables that have had their changes have to reach those.
    fn follow(&mut self, lacking: &BTreeSet<u32>, tables: &Tables) {
        for table in self.lacking.extract_if(.., |table| !lacking.contains(table)) {
            self.since.renew(table, tables);
        }
    }

    fn is_free(&self, tables: &Tables) -> bool {
        self.lacking.is_empty() && self.since.are_reached(tables)
    }
}

impl Generations {
    fn of(tables: &Tables) -> Generations {
        Generations { inet: generations(&tables.inet), inet6: generations(&tables.inet6) }
    }

    /// The generations of a table are the present ones.
    fn renew(&mut self, table: u32, tables: &Tables) {
        renew(&mut self.inet, table, &tables.inet);
        renew(&mut self.inet6, table, &tables.inet6);
    }

    fn are_reached(&self, tables: &Tables) -> bool {
        reached(&tables.inet, &self.inet) && reached(&tables.inet6, &self.inet6)
    }
}

fn generations<A: Address>(tables: &FamilyTables<A>) -> Vec<(u32, u64)> {
    tables.numbers().filter_map(|number| Some((number, tables.rib(number)?.generation()))).collect()
}

fn renew<A: Address>(generations: &mut Vec<(u32, u64)>, table: u32, tables: &FamilyTables<A>) {
    generations.retain(|(number, _)| *number != table);
    generations.extend(tables.rib(table).map(|rib| (table, rib.generation())));
}

fn reached<A: Address>(tables: &FamilyTables<A>, generations: &[(u32, u64)]) -> bool {
    let has = |(number, generation): &(u32, u64)| {
        tables.attachment(*number).is_none_or(|attachment| attachment.generation() >= *generation)
    };
    generations.iter().all(has)
}
