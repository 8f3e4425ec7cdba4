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
    /// Sends the states and tables of a filter whose worker has ended. If that fails, the other process goes on with those that
    /// were sent.
    pub fn send_states(&self, filter: Option<WorkerFilter>) {
        let (Some(WorkerFilter { mut filter, mut server }), Some(connection)) = (filter, &self.connection)
        else {
            return;
        };
        // Changes of tables that came while no worker ran.
        server.serve(&mut filter);
        let interfaces = interface_names(self.plane);
        let now = (filter.clock())();
        let (rules, worker) = filter.parts();
        let send = |bytes: &[u8]| (&**connection).write_all(bytes);
        let (kind, text) = match handover::export(rules, worker, now, &interfaces, send) {
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
