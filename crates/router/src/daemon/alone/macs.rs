//! Ethernet addresses for ports that were given none.

use std::hash::{BuildHasher, RandomState};

use fullview_plane::wire::ethernet::Mac;

/// One that nobody else is likely to have: random, and marked as locally administered.
pub fn any() -> Mac {
    const LOCAL: u8 = 2;
    const GROUP: u8 = 1;
    // The standard library's source of randomness, which makes each of these different.
    let [first, b, c, d, e, f, ..] = RandomState::new().hash_one(()).to_be_bytes();
    Mac([first & !GROUP | LOCAL, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_stations_and_differ() {
        let macs: Vec<Mac> = (0..100).map(|_| any()).collect();
        assert!(macs.iter().all(|mac| !mac.is_group() && mac.0[0] & 2 != 0));
        assert!(macs.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
