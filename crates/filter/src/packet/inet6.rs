//! The header of IPv6 and its extension headers (RFC 8200).

use super::bytes::{array, be16, be32};
use super::error::PacketError;
use super::key::Fragment;
use super::network::NetworkHeader;
use crate::address::{Address, Family};

const FIXED: usize = 40;
/// More are no real traffic; a bound keeps the work for a packet small (RFC 8504, section 5.3).
const MOST_EXTENSIONS: usize = 8;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// Reads the header and the extension headers: the bytes may end after them.
#[inline(always)]
pub(super) fn header(bytes: &[u8]) -> Result<NetworkHeader, PacketError> {
    let fixed: [u8; FIXED] = array(bytes, 0)?;
    let length = be16(&fixed, 4)?.checked_add(FIXED as u16).ok_or(PacketError::Length)?;
    let mut header = NetworkHeader {
        family: Family::Inet6,
        source: address(&fixed, 8)?,
        destination: address(&fixed, 24)?,
        protocol: fixed[6],
        length,
        tos: (be16(&fixed, 0)? >> 4) as u8,
        ttl: fixed[7],
        has_options: false,
        has_extensions: false,
        fragment: Fragment::Whole,
        payload: FIXED,
    };
    if is_extension(header.protocol) {
        extensions(&mut header, bytes)?;
    }
    Ok(header)
}

#[inline(always)]
fn address(fixed: &[u8; FIXED], at: usize) -> Result<Address, PacketError> {
    let address = Address(u128::from_be_bytes(array(fixed, at)?));
    if address.family() == Family::Inet { Err(PacketError::MappedAddress) } else { Ok(address) }
}

#[inline(always)]
const fn is_extension(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
}

#[cold]
fn extensions(header: &mut NetworkHeader, bytes: &[u8]) -> Result<(), PacketError> {
    for _ in 0..MOST_EXTENSIONS {
        if !is_extension(header.protocol) || matches!(header.fragment, Fragment::Later { .. }) {
            return Ok(());
        }
        extension(header, bytes)?;
    }
    if is_extension(header.protocol) { Err(PacketError::Extensions) } else { Ok(()) }
}

/// Steps over the extension header at the current offset.
fn extension(header: &mut NetworkHeader, bytes: &[u8]) -> Result<(), PacketError> {
    let [next, length, ..]: [u8; 8] = array(bytes, header.payload)?;
    let size = match header.protocol {
        FRAGMENT => 8,
        AUTHENTICATION => (usize::from(length) + 2) * 4,
        _ => (usize::from(length) + 1) * 8,
    };
    match header.protocol {
        FRAGMENT => header.fragment = fragment(bytes, header.payload)?,
        ROUTING => header.has_options = true,
        _ => header.has_extensions = true,
    }
    header.protocol = next;
    header.payload += size;
    Ok(())
}

/// The fragment header. One that describes a whole packet (an atomic fragment, RFC 6946) changes nothing.
fn fragment(bytes: &[u8], at: usize) -> Result<Fragment, PacketError> {
    let field = be16(bytes, at + 2)?;
    let id = be32(bytes, at + 4)?;
    Ok(match (field >> 3, field & 1) {
        (0, 0) => Fragment::Whole,
        (0, _) => Fragment::First { id },
        _ => Fragment::Later { id },
    })
}
