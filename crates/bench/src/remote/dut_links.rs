//! Links of the device under test of which one fails, on the machine of an agent.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::machine::{MachineError, ip, ip_json};
use super::own_routes::own_routes;
use super::protocol::DeviceNeighbor;
use super::undo::Changes;
use crate::rates::{Failure, FailureLinks};

/// Longer than two ends of a wire need to agree.
const CARRIER: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);

/// Links with the routes of all failures. Dropping it repairs them, and removes the routes.
pub struct DutLinks {
    links: FailureLinks,
    /// Lines of `ip` that put back the machine's own permanent neighbours and routes by the link that fails.
    own: Vec<String>,
    /// What is set at the link that fails, beside the routes of the failures.
    _changes: Changes,
}

impl DutLinks {
    pub fn new(links: FailureLinks) -> Result<DutLinks, MachineError> {
        let mut changes = Changes::default();
        changes.keep_inet6_addresses(&links.egress)?;
        changes.up(&links.egress)?;
        for (address, mac) in &links.stations {
            let neighbor = DeviceNeighbor { address: *address, mac: mac.clone() };
            changes.neighbor(&links.egress, &neighbor)?;
        }
        let own = [own_neighbors(&links.egress)?, own_routes(&links.egress)?].concat();
        Ok(DutLinks { links, own, _changes: changes })
    }

    /// Runs every line, also after one that fails, whose error it returns.
    pub fn repair(&self) -> Result<(), MachineError> {
        let mut done: Vec<_> = self.links.repair().iter().map(|line| ip(line).map(drop)).collect();
        if !self.own.is_empty() {
            self.await_carrier();
        }
        done.extend(self.own.iter().map(|line| ip(line).map(drop)));
        done.into_iter().collect()
    }

    /// The kernel takes no next-hop object with an interface without carrier, which cards have seconds after they were set up.
    fn await_carrier(&self) {
        let (began, path) =
            (Instant::now(), Path::new("/sys/class/net").join(&self.links.egress).join("carrier"));
        while began.elapsed() < CARRIER
            && fs::read_to_string(&path).is_ok_and(|carrier| carrier.trim() != "1")
        {
            thread::sleep(POLL);
        }
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

/// Lines that set the permanent neighbours at an interface again.
fn own_neighbors(interface: &str) -> Result<Vec<String>, MachineError> {
    let shown = ip_json(&format!("neighbor show dev {interface} nud permanent"))?;
    let line = |entry: &Value| {
        let (address, mac) = (entry["dst"].as_str()?, entry["lladdr"].as_str()?);
        Some(format!("neighbor replace {address} lladdr {mac} dev {interface} nud permanent"))
    };
    Ok(shown.as_array().into_iter().flatten().filter_map(line).collect())
}
