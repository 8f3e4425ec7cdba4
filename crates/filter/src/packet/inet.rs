//! The header of IPv4 (RFC 791).

use super::bytes::{array, be16};
use super::error::PacketError;
use super::key::Fragment;
use super::network::NetworkHeader;
use super::protocol;
use crate::address::{Address, Family};

const MINIMUM: usize = 20;

/// Reads the header alone: the bytes may end after it.
#[inline(always)]
pub(super) fn header(bytes: &[u8]) -> Result<NetworkHeader, PacketError> {
    let fixed: [u8; MINIMUM] = array(bytes, 0)?;
    let payload = usize::from(fixed[0] & 15) * 4;
    let length = be16(&fixed, 2)?;
    if payload < MINIMUM || usize::from(length) < payload {
        return Err(PacketError::Length);
    }
    let protocol = fixed[9];
    Ok(NetworkHeader {
        family: Family::Inet,
        source: Address::inet(u32::from_be_bytes(array(&fixed, 12)?)),
        destination: Address::inet(u32::from_be_bytes(array(&fixed, 16)?)),
        protocol,
        length,
        tos: fixed[1],
        ttl: fixed[8],
        has_options: payload > MINIMUM,
        has_extensions: false,
        fragment: fragment(be16(&fixed, 6)?, be16(&fixed, 4)?, protocol)?,
        payload,
    })
}

/// RFC 1858 and RFC 3128: a fragment at offset one could overwrite the flags of a TCP header that was already judged.
#[inline(always)]
fn fragment(field: u16, id: u16, protocol: u8) -> Result<Fragment, PacketError> {
    const MORE: u16 = 0x2000;
    const OFFSET: u16 = 0x1fff;
    let id = u32::from(id);
    match (field & OFFSET, field & MORE != 0) {
        (0, false) => Ok(Fragment::Whole),
        (0, true) => Ok(Fragment::First { id }),
        (1, _) if protocol == protocol::TCP => Err(PacketError::TinyFragment),
        _ => Ok(Fragment::Later { id }),
    }
}
