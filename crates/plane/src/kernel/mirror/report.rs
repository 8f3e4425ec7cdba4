//! What the mirror tells people.

use fullview_table::Family;

use super::Mirror;
use crate::kernel::event::Link;

/// How much there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Prefixes the kernel has IPv4 routes to, in all its tables.
    pub inet: usize,
    /// IPv6.
    pub inet6: usize,
    /// Links of ours whose packets rules of policy routing may lead elsewhere than to our tables, by name.
    pub ruled: Vec<String>,
}

impl Mirror {
    /// How much there is.
    pub fn report(&self) -> Report {
        let links = self.links.interfaces().filter_map(|(_, link)| link);
        let is_ruled =
            |link: &&Link| [Family::Inet, Family::Inet6].iter().any(|family| self.is_ruled(link, *family));
        let ruled = links.filter(is_ruled).map(|link| link.name.clone()).collect();
        Report { inet: self.inet.len(), inet6: self.inet6.len(), ruled }
    }

    /// What could not be had as the kernel has it, since this was last asked.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sets.notes)
    }

    /// What the FIB framework logged since the lines of `since` were read, and how many there are now.
    pub fn log(&self) -> Vec<fullview_table::fib::framework::Entry> {
        let mut all = self.tables.inet.log();
        all.extend(self.tables.inet6.log());
        all.sort_by_key(|entry| entry.at);
        all
    }
}
