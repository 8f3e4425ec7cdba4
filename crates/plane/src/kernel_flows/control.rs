//! The end of the router's thread: it ends all entries when a view or routes are others.

use std::sync::Arc;

use fullview_table::fib::framework::Reader;

use super::memory::FlowMemory;
use crate::report_time::ReportTime;
use crate::view::View;

/// Ends shared flows as the router learns of changes.
pub struct FlowControl {
    memory: Arc<FlowMemory>,
    followed: Option<FollowedView>,
}

/// What entries follow from.
struct FollowedView {
    view: Arc<View>,
    inet: Vec<Reader<u32>>,
    inet6: Vec<Reader<u128>>,
    /// The generations of the routes of all tables.
    routes: Vec<u64>,
}

impl FollowedView {
    fn new(view: &Arc<View>) -> FollowedView {
        let tables = &view.parts().tables;
        let inet = tables.iter().map(|table| table.inet.reader()).collect();
        let inet6 = tables.iter().map(|table| table.inet6.reader()).collect();
        let mut followed = FollowedView { view: Arc::clone(view), inet, inet6, routes: Vec::new() };
        followed.has_other_routes();
        followed
    }

    /// Whether routes are others than in the last call.
    fn has_other_routes(&mut self) -> bool {
        let inet = self.inet.iter().map(Reader::generation);
        let routes: Vec<_> = inet.chain(self.inet6.iter().map(Reader::generation)).collect();
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
        self.memory.stop();
        self.memory.end_generation();
    }

    /// The memory, to ask how many packets were forwarded.
    pub fn memory(&self) -> &Arc<FlowMemory> {
        &self.memory
    }
}
