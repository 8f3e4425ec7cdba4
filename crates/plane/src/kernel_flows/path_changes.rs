//! When workers have to compare the paths of the flows that they share.

use std::sync::{Arc, Weak};

use crate::view::{TableReaders, View};

/// A view, and which routes its tables have.
#[derive(Default)]
pub struct PathChanges {
    view: Weak<View>,
    /// The generations of all tables: IPv4 and IPv6.
    generations: Vec<[u64; 2]>,
}

impl PathChanges {
    /// Whether the view or routes are others than in the last call. Then workers have to be woken, to take back the flows whose
    /// paths have changed.
    pub fn follow(&mut self, view: &Arc<View>) -> bool {
        let of_table = |table: &TableReaders| [table.inet.generation(), table.inet6.generation()];
        let generations: Vec<_> = view.parts().tables.iter().map(of_table).collect();
        let is_same = generations == self.generations && self.view.ptr_eq(&Arc::downgrade(view));
        (self.view, self.generations) = (Arc::downgrade(view), generations);
        !is_same
    }
}

#[cfg(test)]
mod tests {
    use fullview_table::fib::framework::{Attachment, Origin, SharedReader, Time};
    use fullview_table::fib::registry::Registered;
    use fullview_table::fib::{Algorithm, linear::Linear};
    use fullview_table::{Change, NextHop, Rib};

    use super::*;
    use crate::adjacency::Adjacencies;
    use crate::view::ViewParts;

    fn view(inet: SharedReader<u32>) -> View {
        let inet6 = SharedReader::fixed(Linear.compile(&Rib::<u128>::default()).unwrap().fib());
        View::new(ViewParts::new(Vec::new(), Adjacencies::new(), TableReaders { inet, inet6 })).unwrap()
    }

    #[test]
    fn routes_are_others_once_after_they_were_published() {
        let empty = Rib::default();
        let mut table = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
        table.force(Time::ZERO, &empty, "linear").unwrap();
        let (view, mut changes) = (Arc::new(view(table.shared_reader())), PathChanges::default());
        let mut differ = || [changes.follow(&view), changes.follow(&view)];
        assert_eq!(differ(), [true, false]);
        let (mut changed, route) = (empty, "192.0.2.0/24".parse().unwrap());
        let change = Change { prefix: route, next_hop: Some(NextHop(1)) };
        changed.apply(change);
        table.changed(Time::ZERO, &Arc::new(changed), &[change], Origin::Static);
        assert_eq!(differ(), [true, false]);
    }
}
