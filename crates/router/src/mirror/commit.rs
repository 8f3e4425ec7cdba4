//! Handing on what changed, and forgetting what nobody uses any more.

use fullview_table::Address;
use fullview_table::fib::framework::{FamilyTables, Time};

use super::Mirror;

/// Of the RIBs at one moment, by family and table.
#[derive(Default)]
pub(super) struct Generations {
    inet: Vec<(u32, u64)>,
    inet6: Vec<(u32, u64)>,
}

impl Mirror {
    /// Hands on all that changed.
    pub fn commit(&mut self, now: Time) {
        if std::mem::take(&mut self.sets_changed) {
            let changed = self.sets.refresh_all(&self.links);
            self.view_changed = true;
            if !changed.is_empty() {
                self.inet.touch_sets(&changed);
                self.inet6.touch_sets(&changed);
            }
        }
        self.publish();
        self.inet.commit(now, &mut self.tables.inet, &self.sets);
        self.inet6.commit(now, &mut self.tables.inet6, &self.sets);
        self.tick(now);
    }

    /// Does what is due in the tables, and forgets what nobody uses any more.
    pub fn tick(&mut self, now: Time) {
        self.tables.tick(now);
        self.follow();
        if self.sets.indices.wants_view() {
            self.view_changed = true;
            self.publish();
        }
        self.sets.indices.reclaim();
    }

    /// When [`Self::tick`] has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        self.tables.next_deadline()
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.sets.groups_changed) {
            self.sets.groups.publish();
        }
        if std::mem::take(&mut self.view_changed) | std::mem::take(&mut self.sets.indices.is_new) {
            self.publish_view();
        }
    }

    /// Lets go of next hops and groups that no FIB leads to any more.
    fn follow(&mut self) {
        let (released, groups) = (self.sets.indices.released(), self.sets.released_groups());
        if !(released.is_empty() && groups.is_empty()) {
            self.following.push((self.generations(), released, groups));
        }
        for (generations, released, groups) in std::mem::take(&mut self.following) {
            if !self.have_followed(&generations) {
                self.following.push((generations, released, groups));
                continue;
            }
            self.sets.indices.retire(released);
            for group in groups {
                // Each was created here, and is released once.
                let _ = self.sets.groups.release(group);
                self.sets.groups_changed = true;
            }
        }
    }

    fn generations(&self) -> Generations {
        Generations { inet: generations(&self.tables.inet), inet6: generations(&self.tables.inet6) }
    }

    fn have_followed(&self, generations: &Generations) -> bool {
        reached(&self.tables.inet, &generations.inet) && reached(&self.tables.inet6, &generations.inet6)
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
