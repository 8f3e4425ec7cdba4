//! The end of the router's thread: it ends all entries when a view or routes are others.

use std::sync::Arc;

use super::memory::FlowMemory;
use crate::report_time::ReportTime;
use crate::view::{TableReaders, View};

/// Ends shared flows as the router learns of changes.
pub struct FlowControl {
    memory: Arc<FlowMemory>,
    followed: Option<FollowedView>,
}

/// What entries follow from. It has no FIBs: the memory of those that were replaced is used again.
struct FollowedView {
    view: Arc<View>,
    /// The generations of the routes of all tables.
    routes: Vec<[u64; 2]>,
}

impl FollowedView {
    fn new(view: &Arc<View>) -> FollowedView {
        let mut followed = FollowedView { view: Arc::clone(view), routes: Vec::new() };
        followed.has_other_routes();
        followed
    }

    /// Whether routes are others than in the last call.
    fn has_other_routes(&mut self) -> bool {
        let of_table = |table: &TableReaders| [table.inet.generation(), table.inet6.generation()];
        let routes: Vec<_> = self.view.parts().tables.iter().map(of_table).collect();
        let differs = routes != self.routes;
        self.routes = routes;
        differs
    }
}

impl FlowControl {
    pub fn new(memory: Arc<FlowMemory>) -> FlowControl {
        FlowControl { memory, followed: None }
    }

    /// Ends all entries if the view or routes are others than in the last call, and reports until when everything that the
    /// kernel had told was taken in. It is called in each turn, after what is new was published.
    pub fn follow(&mut self, view: &Arc<View>, complete_until: ReportTime) {
        match &mut self.followed {
            Some(followed) if Arc::ptr_eq(&followed.view, view) => {
                if followed.has_other_routes() {
                    self.memory.end_generation();
                }
            }
            _ => {
                self.followed = Some(FollowedView::new(view));
                self.memory.end_generation();
            }
        }
        self.memory.report_control(complete_until.nanos());
    }

    /// Ends all entries. None forwards before the next [`Self::follow`].
    pub fn pause(&mut self) {
        self.followed = None;
        self.memory.stop();
        self.memory.end_generation();
    }

    /// The memory, to ask how many packets were forwarded.
    pub fn memory(&self) -> &Arc<FlowMemory> {
        &self.memory
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use fullview_table::Rib;
    use fullview_table::fib::framework::{Attachment, SharedReader, Time};
    use fullview_table::fib::registry::Registered;
    use fullview_table::fib::{Algorithm, linear::Linear};

    use super::*;
    use crate::adjacency::Adjacencies;
    use crate::kernel_flows::FlowRegions;
    use crate::view::{ViewParts, Views};

    fn control() -> FlowControl {
        let regions = FlowRegions::new(8, 1);
        let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Box<[AtomicU64]>>();
        let memory =
            FlowMemory::new::<()>(regions, [1, 2], |region| Ok(Box::new(words(regions.words(region)))));
        FlowControl::new(Arc::new(memory.unwrap()))
    }

    fn view(inet: SharedReader<u32>) -> View {
        let inet6 = SharedReader::fixed(Linear.compile(&Rib::<u128>::default()).unwrap().fib());
        View::new(ViewParts::new(Vec::new(), Adjacencies::new(), TableReaders { inet, inet6 })).unwrap()
    }

    /// Only generations are compared here, while a writer waits for readers of an old FIB.
    #[test]
    fn a_fib_that_was_replaced_is_not_kept() {
        let (mut control, empty) = (control(), Rib::default());
        let mut table = Attachment::new(Time::ZERO, 0, u32::ALGORITHMS.into(), Arc::default());
        table.force(Time::ZERO, &empty, "linear").unwrap();
        let views = Views::new(view(table.shared_reader()));
        control.follow(&views.current(), ReportTime::now());
        let former = Arc::downgrade(&table.fib());
        table.force(Time::ZERO, &empty, "bsearch4").unwrap();
        assert_eq!(former.strong_count(), 0);
    }

    #[test]
    fn no_view_is_kept_during_a_pause() {
        let mut control = control();
        let inet = || SharedReader::fixed(Linear.compile(&Rib::<u32>::default()).unwrap().fib());
        let views = Views::new(view(inet()));
        control.follow(&views.current(), ReportTime::now());
        control.pause();
        let former = Arc::downgrade(&views.current());
        views.publish(view(inet()));
        assert_eq!(former.strong_count(), 0);
    }
}
