//! Numbers that follow from names, so that states keep them across a reload.

/// A number from 1 to `most` for a name.
pub fn name_number(name: &str, most: u16) -> u16 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash % u32::from(most)) as u16 + 1
}
