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
        let own = [own_neighbors(&links)?, own_routes(&links.egress)?].concat();
        Ok(DutLinks { links, own, _changes: changes })
    }

    /// Runs every line, also after one that fails, whose error it returns.
    pub fn repair(&self) -> Result<(), MachineError> {
        let mut done: Vec<_> = self.links.repair().iter().map(|line| ip(line).map(drop)).collect();
        if needs_carrier(&self.own) {
            self.await_carrier();
        }
        done.extend(self.own.iter().map(|line| ip(line).map(drop)));
        done.into_iter().collect()
    }

    /// Cards have a carrier seconds after they were set up.
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

/// Whether one of these lines sets a next-hop object: the kernel takes none with an interface without carrier.
fn needs_carrier(lines: &[String]) -> bool {
    lines.iter().any(|line| line.starts_with("nexthop"))
}

/// Lines that set the permanent neighbours at the link that fails again.
fn own_neighbors(links: &FailureLinks) -> Result<Vec<String>, MachineError> {
    let shown = ip_json(&format!("neighbor show dev {} nud permanent", links.egress))?;
    Ok(neighbor_lines(&shown, links))
}

/// The stations are set with the routes of the failures.
fn neighbor_lines(shown: &Value, links: &FailureLinks) -> Vec<String> {
    let is_station = |shown: &str| links.stations.iter().any(|(address, _)| shown.parse() == Ok(*address));
    let line = |entry: &Value| {
        let address = entry["dst"].as_str().filter(|address| !is_station(address))?;
        let mac = entry["lladdr"].as_str()?;
        Some(format!("neighbor replace {address} lladdr {mac} dev {} nud permanent", links.egress))
    };
    shown.as_array().into_iter().flatten().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stations_are_not_among_the_neighbours_of_the_machine() {
        let station = |address: &str| (address.parse().unwrap(), "02:00:00:00:00:02".to_owned());
        let links = FailureLinks {
            egress: "eth2".into(),
            spare: "eth3".into(),
            stations: vec![station("198.19.0.2"), station("2001:db8::2")],
            spare_station: "192.0.2.2".parse().unwrap(),
        };
        let shown = ["198.19.0.2", "198.19.0.9", "2001:db8::2"]
            .map(|address| json!({ "dst": address, "lladdr": "02:00:00:00:00:09" }));
        let expected = "neighbor replace 198.19.0.9 lladdr 02:00:00:00:00:09 dev eth2 nud permanent";
        assert_eq!(neighbor_lines(&json!(shown), &links), [expected]);
    }

    #[test]
    fn only_next_hop_objects_need_a_carrier() {
        let object = "nexthop replace id 5 via 198.19.0.9 dev eth2 proto static";
        let others = [
            "neighbor replace 198.19.0.9 lladdr 02:00:00:00:00:09 dev eth2 nud permanent",
            "-4 route replace 100.64.4.0/24 via 198.19.0.9 dev eth2",
        ];
        assert!(!needs_carrier(&others.map(str::to_owned)));
        assert!(needs_carrier(&[others[0], object].map(str::to_owned)));
    }
}
