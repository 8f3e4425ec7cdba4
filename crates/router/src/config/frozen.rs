//! The keys that a reload cannot change.

use std::collections::BTreeMap;

use super::sections::{MacText, RouterConfig};
use crate::options::PortName;

/// The keys and sections that differ between two configurations and cannot change while the router runs.
pub fn frozen_differences(old: &RouterConfig, new: &RouterConfig) -> Vec<String> {
    let (old_router, new_router) = (&old.router, &new.router);
    let filters = old.filter.as_ref().zip(new.filter.as_ref());
    let differs = [
        ("router.kernel", old_router.kernel != new_router.kernel),
        ("router.interfaces", old_router.interfaces != new_router.interfaces),
        ("router.engine", old_router.engine != new_router.engine),
        ("router.workers", old_router.workers != new_router.workers),
        ("router.cores", old_router.cores != new_router.cores),
        ("xdp", old.xdp != new.xdp),
        ("router.netlink-buffer", old_router.netlink_buffer != new_router.netlink_buffer),
        ("router.bypass-filters", old_router.bypass_filters != new_router.bypass_filters),
        ("router.wait", old_router.wait != new_router.wait),
        ("router.log-level", old_router.log_level != new_router.log_level),
        ("icmp", old.icmp != new.icmp),
        ("neighbors", old.neighbors != new.neighbors),
        ("punt", old.punt != new.punt),
        ("filter", old.filter.is_some() != new.filter.is_some()),
        ("filter.language", filters.is_some_and(|(old, new)| old.language != new.language)),
        ("filter.states", filters.is_some_and(|(old, new)| old.states != new.states)),
        ("filter.kernel-flows", filters.is_some_and(|(old, new)| old.kernel_flows != new.kernel_flows)),
        // Rules know interfaces by numbers, and the rules in force know those of the start.
        (
            "interface (with a filter)",
            !new.router.kernel && new.filter.is_some() && !old.interface.keys().eq(new.interface.keys()),
        ),
        ("control", old.control != new.control),
        ("metrics", old.metrics != new.metrics),
        ("capture", old.capture != new.capture),
        ("export", old.export != new.export),
        ("confine", old.confine != new.confine),
    ];
    let sections = differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
    sections.chain(port_differences(old, new)).collect()
}

/// The frozen keys that differ between sections of interfaces that both configurations have.
fn port_differences(old: &RouterConfig, new: &RouterConfig) -> Vec<String> {
    let (old, new) = (frozen_ports(old), frozen_ports(new));
    let both = old.iter().filter_map(|(name, port)| Some((name, port, new.get(name)?)));
    let differs = both.flat_map(|(name, old, new)| {
        let keys = [("port", old.kind != new.kind), ("mac", old.mac != new.mac), ("mtu", old.mtu != new.mtu)];
        keys.map(|(key, differs)| differs.then(|| format!("interface.{name}.{key}")))
    });
    differs.flatten().collect()
}

/// What cannot change about a port: other stations know the router by its MAC and MTU.
struct FrozenPort {
    /// As it is written: with the engine `auto`, a kind that is written makes threads forward.
    kind: Option<PortName>,
    mac: Option<MacText>,
    mtu: Option<u32>,
}

fn frozen_ports(config: &RouterConfig) -> BTreeMap<&str, FrozenPort> {
    let port = |name: &String| {
        let of = config.interface.get(name).cloned().unwrap_or_default();
        FrozenPort { kind: of.port.or(config.router.port), mac: of.mac, mtu: of.mtu }
    };
    config.router.interfaces.iter().map(|name| (name.as_str(), port(name))).collect()
}
