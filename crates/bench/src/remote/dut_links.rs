//! Links of the device under test of which one fails, on the machine of an agent.

use std::path::Path;

use super::machine::{MachineError, ip};
use super::undo::Changes;
use crate::rates::{Failure, FailureLinks};

/// Links with the routes of all failures. Dropping it repairs them, and removes the routes.
pub struct DutLinks {
    links: FailureLinks,
    /// Lines of `ip` that put back the machine's own routes by the link that fails: the kernel removes them.
    routes: Vec<String>,
    /// Otherwise the kernel removes the addresses of IPv6 too.
    _keeps_addresses: Changes,
}

impl DutLinks {
    pub fn new(links: FailureLinks) -> Result<DutLinks, MachineError> {
        let mut changes = Changes::default();
        let setting = Path::new("/proc/sys/net/ipv6/conf").join(&links.egress).join("keep_addr_on_down");
        if setting.exists() {
            changes.write(&setting, "1")?;
        }
        let routes = [own_routes("-4", &links.egress)?, own_routes("-6", &links.egress)?].concat();
        Ok(DutLinks { links, routes, _keeps_addresses: changes })
    }

    /// Runs every line, also after one that fails, whose error it returns.
    pub fn repair(&self) -> Result<(), MachineError> {
        let lines = self.links.repair();
        let done: Vec<_> = lines.iter().chain(&self.routes).map(|line| ip(line).map(drop)).collect();
        done.into_iter().collect()
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

/// Lines that set the routes by an interface again, of all tables, which come back neither with its addresses nor with the
/// next router advertisement.
fn own_routes(family: &str, interface: &str) -> Result<Vec<String>, MachineError> {
    let shown = ip(&format!("{family} route show table all dev {interface}"))?;
    let comes_back = |line: &str| ["proto kernel", "proto ra"].iter().any(|origin| line.contains(origin));
    let own = shown.lines().map(str::trim).filter(|line| !comes_back(line));
    Ok(own.map(|line| format!("{family} route replace {line} dev {interface}")).collect())
}
