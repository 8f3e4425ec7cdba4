//! The links of a worker's ports, and which of them have failed before the view leaves them.

use std::sync::Arc;

use crate::noted_links::NotedLinks;
use crate::view::View;

/// The links of a worker's ports.
#[derive(Default)]
pub(super) struct PortLinks {
    watched: Option<WatchedLinks>,
    /// Whether any has failed that the view sends by.
    have_failed: bool,
}

struct WatchedLinks {
    notes: Arc<NotedLinks>,
    /// How often the notes had changed when `ports` was made of them.
    changes: u32,
    /// By number.
    ports: Vec<PortLink>,
}

struct PortLink {
    /// Its index in the kernel; 0 if there is none.
    device: u32,
    has_failed: bool,
}

impl PortLinks {
    /// The links of these devices, by port.
    pub fn new(notes: Arc<NotedLinks>, devices: &[u32], view: &View) -> PortLinks {
        let ports = devices.iter().map(|device| PortLink { device: *device, has_failed: false }).collect();
        let watched = Some(WatchedLinks { notes, changes: 0, ports });
        let mut links = PortLinks { watched, have_failed: false };
        links.follow(view);
        links
    }

    /// Whether others may have failed than in the last [`Self::follow`].
    #[inline(always)]
    pub fn have_changed(&self) -> bool {
        self.watched.as_ref().is_some_and(|watched| watched.notes.changes() != watched.changes)
    }

    /// Finds out which links have failed that this view sends by. Says whether they are others than before.
    pub fn follow(&mut self, view: &View) -> bool {
        let Some(watched) = &mut self.watched else { return false };
        watched.changes = watched.notes.changes();
        let mut are_others = false;
        for (number, port) in (0..).zip(&mut watched.ports) {
            let has_failed = watched.notes.has_failed(port.device) && view.sends_by(number);
            are_others |= std::mem::replace(&mut port.has_failed, has_failed) != has_failed;
        }
        self.have_failed = watched.ports.iter().any(|port| port.has_failed);
        are_others
    }

    #[inline(always)]
    pub fn have_failed(&self) -> bool {
        self.have_failed
    }

    pub fn has_failed(&self, port: u16) -> bool {
        let link = self.watched.as_ref().and_then(|watched| watched.ports.get(usize::from(port)));
        link.is_some_and(|link| link.has_failed)
    }
}
