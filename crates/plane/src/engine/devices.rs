//! Devices that packets leave by, in a map: the kernel finds them there sooner than by their index.

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::xdp::DevMap;
use aya::maps::{Map, MapData};

use super::config::{XdpConfig, XdpNextHop};
use super::error::EngineError;

/// DevmapKeys of devices, by the device's index in the kernel.
pub(super) type DevmapKeys = BTreeMap<u32, u32>;

/// The map, and what it holds.
pub(super) struct Devices {
    map: DevMap<MapData>,
    places: DevmapKeys,
}

impl Devices {
    pub fn new(map: Map) -> Result<Devices, EngineError> {
        Ok(Devices { map: map.try_into()?, places: DevmapKeys::new() })
    }

    /// DevmapKeys for the devices of a plan. One keeps its place, since packets may go by the plan before; place 0 is empty.
    ///
    /// A device without a place is none the less sent to, by its index: one that the kernel does not know (it went away,
    /// and netlink will say so), or one too many.
    pub fn of(&mut self, plan: &XdpConfig) -> &DevmapKeys {
        let devices: BTreeSet<u32> = plan.next_hops.iter().filter_map(|(_, way)| way.device()).collect();
        for ifindex in devices {
            let next = self.places.len() as u32 + 1;
            if !self.places.contains_key(&ifindex) && self.map.set(next, ifindex, None, 0).is_ok() {
                self.places.insert(ifindex, next);
            }
        }
        &self.places
    }
}

impl XdpNextHop {
    fn device(&self) -> Option<u32> {
        match self {
            XdpNextHop::Neighbor { ifindex, .. } => Some(*ifindex),
            XdpNextHop::Group(_) | XdpNextHop::Unresolved { .. } | XdpNextHop::Pass(_) => None,
        }
    }
}
