//! The maps of egress devices (DEVMAP), in which the kernel finds a device faster than by its index.

use std::collections::BTreeSet;

use aya::maps::xdp::DevMap;
use aya::maps::{Map, MapData};

use super::config::{DevmapKeys, XdpConfig, XdpNextHop};
use super::error::EngineError;

/// The maps, which have the same entries, and their keys.
pub(super) struct Devices {
    maps: [DevMap<MapData>; 2],
    keys: DeviceKeys,
    /// The devices of the configuration that was given last.
    used: BTreeSet<u32>,
}

/// The keys of devices, and those that no packet can find in a configuration. Key 0 is empty.
struct DeviceKeys {
    given: DevmapKeys,
    free: Vec<u16>,
}

impl Devices {
    pub fn new([one, other]: [Map; 2]) -> Result<Devices, EngineError> {
        let maps: [DevMap<MapData>; 2] = [one.try_into()?, other.try_into()?];
        let keys = DeviceKeys::below(maps[0].len());
        Ok(Devices { maps, keys, used: BTreeSet::new() })
    }

    /// Adds the devices of a configuration. A device keeps its key, and no other one gets it before [`Self::release_unused`],
    /// because packets may still use the configuration before.
    ///
    /// The program sends to a device without a key by its index: one that the kernel does not know (it was removed, and
    /// netlink will report that), or one that the map has no room for.
    pub fn of(&mut self, config: &XdpConfig) -> &DevmapKeys {
        self.used = config.next_hops.iter().filter_map(|(_, next_hop)| next_hop.device()).collect();
        for ifindex in self.used.clone() {
            if !self.keys.given.contains_key(&ifindex) {
                self.add(ifindex);
            }
        }
        &self.keys.given
    }

    fn add(&mut self, ifindex: u32) {
        let Some(key) = self.keys.give(ifindex) else { return };
        if !self.enter(key, ifindex) {
            self.keys.take_back(ifindex);
        }
    }

    /// Enters a device at its key, if it has one: the kernel empties the entry of a device that is removed, and another one may
    /// get its index.
    pub fn enter_again(&mut self, ifindex: u32) {
        if let Some(key) = self.keys.given.get(&ifindex).copied() {
            self.enter(key, ifindex);
        }
    }

    fn enter(&mut self, key: u16, ifindex: u32) -> bool {
        self.maps.iter_mut().all(|map| map.set(key.into(), ifindex, None, 0).is_ok())
    }

    /// Makes the keys free that the configuration which was given last does not have. All packets have to use that one.
    pub fn release_unused(&mut self) {
        self.keys.keep(&self.used);
    }
}

impl DeviceKeys {
    /// Keys below this number.
    fn below(entries: u32) -> DeviceKeys {
        // The maps have fewer entries than this type has numbers. The lowest key is given first.
        DeviceKeys { given: DevmapKeys::new(), free: (1..entries as u16).rev().collect() }
    }

    fn give(&mut self, ifindex: u32) -> Option<u16> {
        let key = self.free.pop()?;
        self.given.insert(ifindex, key);
        Some(key)
    }

    fn take_back(&mut self, ifindex: u32) {
        self.free.extend(self.given.remove(&ifindex));
    }

    fn keep(&mut self, used: &BTreeSet<u32>) {
        let unused = self.given.extract_if(.., |ifindex, _| !used.contains(ifindex));
        self.free.extend(unused.map(|(_, key)| key));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_devices_that_are_gone_are_given_to_others_and_no_other_key_changes() {
        let mut keys = DeviceKeys::below(4);
        assert_eq!([7, 8, 9, 10].map(|device| keys.give(device)), [Some(1), Some(2), Some(3), None]);
        keys.keep(&BTreeSet::from([7, 9]));
        assert_eq!(keys.give(10), Some(2));
        assert_eq!(keys.given, DevmapKeys::from([(7, 1), (9, 3), (10, 2)]));
        keys.take_back(9);
        assert_eq!(keys.give(11), Some(3));
    }
}
