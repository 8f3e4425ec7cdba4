//! The packet that an ICMP error quotes.

use super::bytes::be16;
use super::key::{Fragment, Quoted};
use super::network::NetworkHeader;
use super::protocol::{ICMP, ICMP6, TCP, has_ports};
use super::{bytes, inet, inet6};
use crate::address::Family;

/// Reads a quote: at least a whole IP header, and eight bytes after it (RFC 792; more by RFC 1812 and RFC 4443). A quote
/// that shows less belongs to no flow.
#[cold]
pub(super) fn read(quote: &[u8], family: Family) -> Option<Quoted> {
    let header = match (quote.first()? >> 4, family) {
        (4, Family::Inet) => inet::header(quote).ok()?,
        (6, Family::Inet6) => inet6::header(quote).ok()?,
        _ => return None,
    };
    if matches!(header.fragment, Fragment::Later { .. }) {
        return None;
    }
    let (source_port, destination_port) = ports(&header, quote)?;
    Some(Quoted {
        source: header.source,
        destination: header.destination,
        source_port,
        destination_port,
        protocol: header.protocol,
        seq: sequence(&header, quote)?,
    })
}

/// The ports; of an ICMP query the identifier at both ends, as in [`Packet::flow_ports`](super::Packet::flow_ports).
fn ports(header: &NetworkHeader, quote: &[u8]) -> Option<(u16, u16)> {
    let at = header.payload;
    match header.protocol {
        ICMP | ICMP6 => be16(quote, at + 4).ok().map(|id| (id, id)),
        protocol if has_ports(protocol) => Some((be16(quote, at).ok()?, be16(quote, at + 2).ok()?)),
        _ => Some((0, 0)),
    }
}

fn sequence(header: &NetworkHeader, quote: &[u8]) -> Option<u32> {
    if header.protocol == TCP { bytes::be32(quote, header.payload + 4).ok() } else { Some(0) }
}
