//! Numbers in network byte order, bounds-checked.

use super::error::PacketError;

/// The bytes at `at`, if all are there.
#[inline(always)]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], PacketError> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().ok_or(PacketError::TooShort)
}

#[inline(always)]
pub(super) fn be16(bytes: &[u8], at: usize) -> Result<u16, PacketError> {
    array(bytes, at).map(u16::from_be_bytes)
}

#[inline(always)]
pub(super) fn be32(bytes: &[u8], at: usize) -> Result<u32, PacketError> {
    array(bytes, at).map(u32::from_be_bytes)
}
