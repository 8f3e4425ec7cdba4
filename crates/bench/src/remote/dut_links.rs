//! Links of the device under test of which one fails, on the machine of an agent.

use super::machine::{MachineError, ip};
use crate::rates::{Failure, FailureLinks};

/// Links with the routes of all failures. Dropping it repairs them, and removes the routes.
pub struct DutLinks {
    links: FailureLinks,
    /// Routes of the machine by the link that fails, as `ip` shows them: the kernel removes them.
    routes: Vec<String>,
}

impl DutLinks {
    pub fn new(links: FailureLinks) -> Result<DutLinks, MachineError> {
        let shown = ip(&format!("-4 route show dev {}", links.egress))?;
        let own = shown.lines().filter(|line| !line.contains("proto kernel"));
        let routes = own.map(|line| format!("route replace {} dev {}", line.trim(), links.egress)).collect();
        Ok(DutLinks { links, routes })
    }

    pub fn repair(&self) -> Result<(), MachineError> {
        self.links.repair().iter().chain(&self.routes).try_for_each(|line| ip(line).map(drop))
    }

    pub fn fail(&self, failure: Failure) -> Result<(), MachineError> {
        ip(&self.links.fail(failure)).map(drop)
    }
}

impl Drop for DutLinks {
    fn drop(&mut self) {
        // Failures cannot be reported from here; what follows is done all the same.
        let _ = self.repair();
        self.links.remove().iter().for_each(|line| _ = ip(line));
    }
}
