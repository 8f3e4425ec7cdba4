//! What the mirror tells people.

use super::Mirror;

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
        Report { inet: self.inet.len(), inet6: self.inet6.len(), ruled: self.ruled.clone() }
    }

    /// What could not be had as the kernel has it, since this was last asked.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sets.notes)
    }

    /// What the FIB framework logged since the lines of `since` were read, and how many there are now.
    pub fn log(&self) -> Vec<fullview_table::fib::framework::LogEntry> {
        let mut all = self.tables.inet.log();
        all.extend(self.tables.inet6.log());
        all.sort_by_key(|entry| entry.at);
        all
    }
}
