//! Ethernet addresses for ports that have none configured.

use std::hash::{BuildHasher, RandomState};

use fullview_plane::wire::ethernet::Mac;

/// A random address, marked as locally administered, that no other station is likely to have.
pub fn random() -> Mac {
    const LOCAL: u8 = 2;
    const GROUP: u8 = 1;
    // The standard library seeds each `RandomState` differently.
    let [first, b, c, d, e, f, ..] = RandomState::new().hash_one(()).to_be_bytes();
    Mac([first & !GROUP | LOCAL, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_addresses_are_unicast_and_differ() {
        let macs: Vec<Mac> = (0..100).map(|_| random()).collect();
        assert!(macs.iter().all(|mac| !mac.is_group() && mac.0[0] & 2 != 0));
        assert!(macs.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
