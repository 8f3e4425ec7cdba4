//! Messages of ICMP (RFC 792, 950) and ICMPv6 (RFC 4443).

use super::bytes::array;
use super::error::PacketError;
use super::key::{IcmpMessage, Packet, Transport};
use super::quoted;
use crate::address::Family;

/// Reads the message at `at`.
#[inline(always)]
pub(super) fn read(packet: &mut Packet, whole: &[u8], at: usize) -> Result<(), PacketError> {
    let [kind, code, _, _, high, low, _, _] = array(whole, at)?;
    let is_query = is_query(packet.family, kind);
    let id = if is_query { u16::from_be_bytes([high, low]) } else { 0 };
    packet.transport = Transport::Icmp(IcmpMessage { kind, code, id, is_query });
    if is_error(packet.family, kind) {
        packet.quoted = whole.get(at + 8..).and_then(|quote| quoted::read(quote, packet.family));
    }
    Ok(())
}

/// Requests and answers with an identifier: echo, timestamp, information, address mask.
#[inline(always)]
pub const fn is_query(family: Family, kind: u8) -> bool {
    match family {
        Family::Inet => matches!(kind, 0 | 8 | 13..=18),
        Family::Inet6 => matches!(kind, 128 | 129),
    }
}

/// The kind that answers a request, or asks for an answer.
#[inline]
pub const fn counterpart(family: Family, kind: u8) -> Option<u8> {
    Some(match (family, kind) {
        (Family::Inet, 0) => 8,
        (Family::Inet, 8) => 0,
        (Family::Inet, 13 | 15 | 17) | (Family::Inet6, 128) => kind + 1,
        (Family::Inet, 14 | 16 | 18) | (Family::Inet6, 129) => kind - 1,
        _ => return None,
    })
}

impl Packet {
    /// Whether it is an ICMP or ICMPv6 error, which is about another packet and belongs to no flow of its own.
    #[inline]
    pub fn is_icmp_error(&self) -> bool {
        self.icmp().is_some_and(|message| is_error(self.family, message.kind))
    }
}

/// Messages that quote the packet that they are about.
#[inline(always)]
const fn is_error(family: Family, kind: u8) -> bool {
    match family {
        Family::Inet => matches!(kind, 3 | 4 | 5 | 11 | 12),
        Family::Inet6 => matches!(kind, 1..=4),
    }
}
