//! Limits and timers of the host of a router without a kernel.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;

use crate::host::RateLimit;
use crate::host::config::{HostSettings, NeighborSettings};

/// `[icmp]`: the most errors that are sent (RFC 1812, section 4.3.2.8).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct IcmpSection {
    /// Errors a second.
    pub rate: u32,
    /// Errors at once after a pause.
    pub burst: u32,
    /// Errors a second about the packets of one interface.
    pub interface_rate: u32,
    pub interface_burst: u32,
}

impl Default for IcmpSection {
    fn default() -> IcmpSection {
        let HostSettings { errors, errors_per_interface: each, .. } = HostSettings::default();
        let (rate, burst) = (errors.rate, errors.burst);
        IcmpSection { rate, burst, interface_rate: each.rate, interface_burst: each.burst }
    }
}

/// `[neighbors]`: how neighbours are resolved and kept (RFC 4861, section 10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeighborLimitsSection {
    /// The most neighbours, not counting static ones.
    pub most: Option<usize>,
    /// The time between two solicitations.
    pub retransmit_ms: Option<NonZeroU64>,
    /// The solicitations after which a neighbour that does not answer counts as gone.
    pub questions: Option<u8>,
    /// How long a confirmed neighbour stays reachable.
    pub reachable_ms: Option<u64>,
    /// How long a neighbour is kept that announced itself without a solicitation.
    pub stale_ms: Option<u64>,
    /// How long no other station can take over a neighbour's IPv4 address.
    pub lock_ms: Option<u64>,
}

impl NeighborLimitsSection {
    fn settings(self) -> NeighborSettings {
        let defaults = NeighborSettings::default();
        let or = |millis: Option<u64>, default| millis.map_or(default, Duration::from_millis);
        NeighborSettings {
            capacity: self.most.unwrap_or(defaults.capacity),
            retransmit: or(self.retransmit_ms.map(NonZeroU64::get), defaults.retransmit),
            probes: self.questions.map_or(defaults.probes, u32::from),
            reachable: or(self.reachable_ms, defaults.reachable),
            stale: or(self.stale_ms, defaults.stale),
            lock: or(self.lock_ms, defaults.lock),
            ..defaults
        }
    }
}

/// The host's settings, from both sections.
pub fn host_settings(icmp: IcmpSection, neighbors: NeighborLimitsSection) -> HostSettings {
    let IcmpSection { rate, burst, interface_rate, interface_burst } = icmp;
    let errors = RateLimit { rate, burst };
    let errors_per_interface = RateLimit { rate: interface_rate, burst: interface_burst };
    HostSettings { errors, errors_per_interface, neighbors: neighbors.settings(), ..HostSettings::default() }
}
