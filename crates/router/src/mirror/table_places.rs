//! Which tables packets are looked up in, and their positions in the view: the main table, those of the VRFs that
//! interfaces belong to, and those of the rules that interfaces follow. Other tables of the kernel need no position, however
//! many there are.

use std::collections::BTreeSet;

use crate::route::MAIN_TABLE;

pub(super) struct TablePlaces {
    /// The kernel's numbers of the tables, by position: the main table is the first.
    numbers: Vec<u32>,
    /// The number of positions.
    most: usize,
    lacks_some: bool,
}

impl Default for TablePlaces {
    /// As many as an interface can name.
    fn default() -> TablePlaces {
        TablePlaces { numbers: vec![MAIN_TABLE], most: 1 << 16, lacks_some: false }
    }
}

impl TablePlaces {
    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }

    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    pub fn of(&self, table: u32) -> Option<u16> {
        let place = self.numbers.iter().position(|number| *number == table)?;
        u16::try_from(place).ok()
    }

    /// Gives positions to these tables, and takes those of others. A table that had one keeps one, though maybe not the
    /// same. Returns a warning if there are more tables than positions and there were not before.
    pub fn follow(&mut self, mut used: BTreeSet<u32>) -> Option<String> {
        self.numbers.retain(|number| *number == MAIN_TABLE || used.contains(number));
        self.numbers.iter().for_each(|number| {
            used.remove(number);
        });
        let room = self.most.saturating_sub(self.numbers.len());
        let is_new = used.len() > room && !self.lacks_some;
        self.lacks_some = used.len() > room;
        self.numbers.extend(used.into_iter().take(room));
        let most = self.most;
        is_new.then(|| {
            format!(
                "interfaces use more than {most} routing tables: packets of the interfaces of some are left to the kernel"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_beyond_the_limit_have_no_position_until_others_are_gone() {
        let mut places = TablePlaces::default();
        places.limit(3);
        assert_eq!(places.follow([MAIN_TABLE, 300].into()), None);
        let warning = places.follow([MAIN_TABLE, 100, 200, 300].into());
        assert!(warning.is_some_and(|text| text.contains("more than 3")));
        assert_eq!(places.numbers(), [MAIN_TABLE, 300, 100], "a table keeps its position");
        assert_eq!([places.of(MAIN_TABLE), places.of(200)], [Some(0), None]);
        assert_eq!(places.follow([100, 200, 300, 400].into()), None, "it is said once");
        assert_eq!(places.follow([200].into()), None);
        assert_eq!(places.numbers(), [MAIN_TABLE, 200]);
        assert!(places.follow([100, 200, 300].into()).is_some());
    }
}
