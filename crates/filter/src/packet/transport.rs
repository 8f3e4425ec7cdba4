//! The headers of transport protocols.

use super::bytes::{array, be16, be32};
use super::error::PacketError;
use super::icmp;
use super::key::{Packet, TcpSegment, Transport};
use super::protocol::{self, ICMP, ICMP6, TCP, has_ports, tcp};
use crate::address::Family;

/// Reads the header at `at` of a packet whose length is already checked.
#[inline(always)]
pub(super) fn read(packet: &mut Packet, whole: &[u8], at: usize) -> Result<(), PacketError> {
    if has_ports(packet.protocol) {
        packet.source_port = be16(whole, at)?;
        packet.destination_port = be16(whole, at + 2)?;
    }
    match (packet.protocol, packet.family) {
        (TCP, _) => packet.transport = Transport::Tcp(segment(whole, at)?),
        (ICMP, Family::Inet) | (ICMP6, Family::Inet6) => icmp::read(packet, whole, at)?,
        (protocol::UDP, _) if whole.len() < at + 8 => return Err(PacketError::TooShort),
        _ => {}
    }
    Ok(())
}

/// The header of a whole segment, if it is a plain one (see [`tcp::is_plain`]).
#[inline]
pub fn plain_segment(whole: &[u8]) -> Option<TcpSegment> {
    segment(whole, 0).ok().filter(|segment| tcp::is_plain(segment.flags))
}

#[inline(always)]
fn segment(whole: &[u8], at: usize) -> Result<TcpSegment, PacketError> {
    const MINIMUM: usize = 20;
    let header: [u8; MINIMUM] = array(whole, at)?;
    let length = usize::from(header[12] >> 4) * 4;
    let flags = header[13];
    let payload = whole.len().checked_sub(at + length).filter(|_| length >= MINIMUM);
    let options =
        if flags & tcp::SYN == 0 { &[] } else { whole.get(at + MINIMUM..at + length).unwrap_or(&[]) };
    Ok(TcpSegment {
        seq: be32(&header, 4)?,
        ack: be32(&header, 8)?,
        flags,
        window: be16(&header, 14)?,
        // A header is at most 60 bytes and a packet at most 65535.
        payload: payload.ok_or(PacketError::Length)? as u16,
        scale: window_scale(options),
    })
}

/// The window scale option (RFC 7323, section 2). A shift beyond 14 counts as 14.
fn window_scale(mut options: &[u8]) -> Option<u8> {
    loop {
        options = match options {
            [0, ..] | [] => return None,
            [1, rest @ ..] => rest,
            [3, 3, shift, ..] => return Some((*shift).min(14)),
            [_, length, ..] if *length >= 2 => options.get(usize::from(*length)..)?,
            _ => return None,
        }
    }
}
