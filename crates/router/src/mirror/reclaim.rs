//! Waits until all FIBs have followed the removal of routes, then frees the next hops and groups that the routes used.

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
        for Unused { since, .. } in self.0.iter_mut().filter(|_| !tables.is_empty()) {
            since.inet.retain(stays);
            since.inet6.retain(stays);
        }
    }

    /// Frees what no FIB leads to any more. A generation of a RIB says nothing about changes that the RIB does not have: while
    /// a table is kept from some, what their routes used stays where it is.
    pub fn follow(&mut self, routing: &mut Routing) {
        if !routing.has_changes() {
            self.take_released(routing);
        }
        for unused in self.0.extract_if(.., |unused| unused.since.are_reached(&routing.tables)) {
            routing.sets.free(unused.next_hops, unused.groups);
        }
    }

    fn take_released(&mut self, routing: &mut Routing) {
        let (next_hops, groups) =
            (routing.sets.next_hops.take_released(), routing.sets.take_released_groups());
        if !(next_hops.is_empty() && groups.is_empty()) {
            self.0.push(Unused { since: Generations::of(&routing.tables), next_hops, groups });
        }
    }
}

impl Generations {
    fn of(tables: &Tables) -> Generations {
        Generations { inet: generations(&tables.inet), inet6: generations(&tables.inet6) }
    }

    fn are_reached(&self, tables: &Tables) -> bool {
        reached(&tables.inet, &self.inet) && reached(&tables.inet6, &self.inet6)
    }
}

fn generations<A: Address>(tables: &FamilyTables<A>) -> Vec<(u32, u64)> {
    tables.numbers().filter_map(|number| Some((number, tables.rib(number)?.generation()))).collect()
}

fn reached<A: Address>(tables: &FamilyTables<A>, generations: &[(u32, u64)]) -> bool {
    let has = |(number, generation): &(u32, u64)| {
        tables.attachment(*number).is_none_or(|attachment| attachment.generation() >= *generation)
    };
    generations.iter().all(has)
}
