//! The failed links that programs in the kernel leave.

use fullview_plane::engine::LinkFailures;

use super::link_alarm::FailureNotes;
use crate::netlink::event::Link;

/// Where programs learn of failed links: the running one, and the one whose place it takes.
pub struct ProgramNotes(pub Vec<NotedFailures>);

/// Where a program learns of failed links.
pub struct NotedFailures {
    pub failures: LinkFailures,
    /// The network namespace whose failed links a program within the kernel can note, if there is one.
    pub namespace: Option<u32>,
}

impl FailureNotes for ProgramNotes {
    fn begin(&self) {
        let by_kernel = self.0.iter().filter_map(|noted| Some((&noted.failures, noted.namespace?)));
        by_kernel.for_each(|(failures, namespace)| failures.begin(namespace));
    }

    fn note(&self, link: &Link, has_failed: bool) {
        self.0.iter().for_each(|noted| noted.failures.note(link.index, has_failed));
    }

    fn forget(&self) {
        self.0.iter().for_each(|noted| noted.failures.forget());
    }

    fn end(&self) {
        self.0.iter().for_each(|noted| noted.failures.end());
    }
}
