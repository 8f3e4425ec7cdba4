//! The maps of egress devices (DEVMAP), in which the kernel finds a device faster than by its index.

use std::collections::BTreeSet;

use aya::maps::xdp::DevMap;
use aya::maps::{Map, MapData};

use super::config::{DevmapKeys, XdpConfig, XdpNextHop};
use super::error::EngineError;

/// The maps, which have the same entries, and their keys.
pub(super) struct Devices {
    maps: [DevMap<MapData>; 2],
    keys: DevmapKeys,
}

impl Devices {
    pub fn new([one, other]: [Map; 2]) -> Result<Devices, EngineError> {
        Ok(Devices { maps: [one.try_into()?, other.try_into()?], keys: DevmapKeys::new() })
    }

    /// Adds the devices of a configuration. A device keeps its key, because packets may still use the configuration before;
    /// key 0 is empty.
    ///
    /// The program sends to a device without a key by its index: one that the kernel does not know (it was removed, and
    /// netlink will report that), or one that the map has no room for.
    pub fn of(&mut self, config: &XdpConfig) -> &DevmapKeys {
        let devices: BTreeSet<u32> =
            config.next_hops.iter().filter_map(|(_, next_hop)| next_hop.device()).collect();
        for ifindex in devices {
            if !self.keys.contains_key(&ifindex) {
                self.add(ifindex);
            }
        }
        &self.keys
    }

    fn add(&mut self, ifindex: u32) {
        // The maps have fewer entries than this type has numbers.
        let next = self.keys.len() as u16 + 1;
        if self.maps.iter_mut().all(|map| map.set(next.into(), ifindex, None, 0).is_ok()) {
            self.keys.insert(ifindex, next);
        }
    }
}

impl XdpNextHop {
    fn device(&self) -> Option<u32> {
        match self {
            XdpNextHop::Neighbor { ifindex, .. } => Some(*ifindex),
            XdpNextHop::NoMultiBuffer(neighbor) => neighbor.device(),
            XdpNextHop::Group(_)
            | XdpNextHop::Unresolved { .. }
            | XdpNextHop::NoRedirect(_)
            | XdpNextHop::Pass(_)
            | XdpNextHop::Blackhole => None,
        }
    }
}
