//! What a router that ends sends to the process that goes on in its place.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use fullview_filter::handover;

use super::control_plane::ControlPlane;
use super::running_filter::WorkerFilter;
use crate::events::EventKind;

/// The process that goes on.
pub struct Successor<'a> {
    pub plane: &'a ControlPlane,
    /// The connection with it, unless that has broken.
    pub connection: Option<Arc<UnixStream>>,
}

impl Successor<'_> {
    /// Sends the states and tables of a filter whose workers have ended. If that fails, the other process goes on with those that
    /// were sent.
    pub fn send_states(&self, mut filters: Vec<WorkerFilter>) {
        // Changes of tables that came while no worker ran.
        filters.iter_mut().for_each(|WorkerFilter { filter, server, .. }| server.serve(filter));
        let (Some(WorkerFilter { filter: first, .. }), Some(connection)) =
            (filters.first(), &self.connection)
        else {
            return;
        };
        let (rules, now) = (Arc::clone(first.rules()), (first.clock())());
        let mut workers: Vec<_> = filters.iter_mut().map(|worker| worker.filter.parts().1).collect();
        let interfaces = interface_names(self.plane);
        let send = |bytes: &[u8]| (&**connection).write_all(bytes);
        let (kind, text) = match handover::export(&rules, &mut workers, now, &interfaces, send) {
            Ok(count) => (EventKind::Router, format!("{count} states of the filter were handed over")),
            Err(error) => {
                (EventKind::Warning, format!("what the filter remembers cannot be handed over: {error}"))
            }
        };
        self.plane.log.line(self.plane.now(), kind, &text);
    }
}

fn interface_names(plane: &ControlPlane) -> Vec<String> {
    let view = plane.mirror.views().current();
    view.parts().interfaces.iter().map(|interface| interface.name.clone()).collect()
}
