//! How much a router without a kernel does for strangers.

use std::time::Duration;

use crate::host::RateLimit;
use crate::host::config::{HostSettings, NeighborSettings};
use serde::Deserialize;

use super::Config;

/// `[icmp]`: errors that are sent, at most. RFC 1812, section 4.3.2.8.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Icmp {
    /// A second, and at once after a pause.
    pub rate: u32,
    pub burst: u32,
    /// About packets of one interface.
    pub interface_rate: u32,
    pub interface_burst: u32,
}

impl Default for Icmp {
    fn default() -> Icmp {
        let HostSettings { errors, errors_per_interface: each, .. } = HostSettings::default();
        let (rate, burst) = (errors.rate, errors.burst);
        Icmp { rate, burst, interface_rate: each.rate, interface_burst: each.burst }
    }
}

/// `[neighbors]`: how they are found and kept. RFC 4861, section 10.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbors {
    /// At most, static ones not counted.
    pub most: Option<usize>,
    /// Between two questions.
    pub retransmit_ms: Option<u64>,
    /// Before a neighbour counts as gone.
    pub questions: Option<u32>,
    /// How long an answer is good for.
    pub reachable_ms: Option<u64>,
    /// How long one is believed that spoke without having been asked.
    pub stale_ms: Option<u64>,
    /// How long nobody else can claim a neighbour's IPv4 address.
    pub lock_ms: Option<u64>,
}

impl Neighbors {
    fn settings(self) -> NeighborSettings {
        let usual = NeighborSettings::default();
        let or = |millis: Option<u64>, usual| millis.map_or(usual, Duration::from_millis);
        NeighborSettings {
            capacity: self.most.unwrap_or(usual.capacity),
            retransmit: or(self.retransmit_ms, usual.retransmit),
            probes: self.questions.unwrap_or(usual.probes),
            reachable: or(self.reachable_ms, usual.reachable),
            stale: or(self.stale_ms, usual.stale),
            lock: or(self.lock_ms, usual.lock),
            ..usual
        }
    }
}

impl Config {
    /// All of it.
    pub fn host(&self) -> HostSettings {
        let Icmp { rate, burst, interface_rate, interface_burst } = self.icmp;
        let errors = RateLimit { rate, burst };
        let errors_per_interface = RateLimit { rate: interface_rate, burst: interface_burst };
        HostSettings {
            errors,
            errors_per_interface,
            neighbors: self.neighbors.settings(),
            ..HostSettings::default()
        }
    }
}
