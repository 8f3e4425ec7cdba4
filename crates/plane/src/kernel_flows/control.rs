//! The end of the router's thread: it ends all entries when a view differs from the one before by more than adjacencies.

use std::sync::Arc;

use super::memory::FlowMemory;
use crate::report_time::ReportTime;
use crate::view::View;

/// Ends shared flows as the router learns of changes.
pub struct FlowControl {
    memory: Arc<FlowMemory>,
    /// What entries follow from, apart from routes.
    view: Option<Arc<View>>,
}

impl FlowControl {
    pub fn new(memory: Arc<FlowMemory>) -> FlowControl {
        FlowControl { memory, view: None }
    }

    /// Ends all entries if the view differs from that in the last call by more than adjacencies, and reports until when
    /// everything that the kernel had told was taken in. It is called in each turn, after what is new was published.
    pub fn follow(&mut self, view: &Arc<View>, complete_until: ReportTime) {
        let is_like = |known: &Arc<View>| Arc::ptr_eq(known, view) || view.differs_by_adjacencies_only(known);
        if !self.view.as_ref().is_some_and(is_like) {
            self.memory.end_generation();
        }
        self.view = Some(Arc::clone(view));
        self.memory.report_control(complete_until.nanos());
    }

    /// Ends all entries. None forwards before the next [`Self::follow`].
    pub fn pause(&mut self) {
        self.view = None;
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
    use fullview_table::fib::{Algorithm, linear::Linear};

    use super::*;
    use crate::adjacency::Adjacencies;
    use crate::kernel_flows::FlowRegions;
    use crate::view::{TableReaders, ViewParts, Views};

    fn control() -> FlowControl {
        let regions = FlowRegions::new(8, 1);
        let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Box<[AtomicU64]>>();
        let memory =
            FlowMemory::new::<()>(regions, [1, 2], |region| Ok(Box::new(words(regions.words(region)))));
        FlowControl::new(Arc::new(memory.unwrap()))
    }

    fn view() -> View {
        let inet = Linear.compile(&Rib::<u32>::default()).unwrap().fib();
        let inet6 = Linear.compile(&Rib::<u128>::default()).unwrap().fib();
        View::new(ViewParts::new(Vec::new(), Adjacencies::new(), TableReaders::fixed(inet, inet6))).unwrap()
    }

    #[test]
    fn no_view_is_kept_during_a_pause() {
        let mut control = control();
        let views = Views::new(view());
        control.follow(&views.current(), ReportTime::now());
        control.pause();
        let former = Arc::downgrade(&views.current());
        views.publish(view());
        assert_eq!(former.strong_count(), 0);
    }
}
