//! From bytes to what a filter sees.

use super::error::PacketError;
use super::key::{Fragment, Packet, Pass, Transport};
use super::network::NetworkHeader;
use super::{inet, inet6, transport};

/// Reads the network header with its options or extension headers. The bytes may end after it.
#[inline(always)]
pub fn network_header(bytes: &[u8]) -> Result<NetworkHeader, PacketError> {
    match bytes.first().ok_or(PacketError::TooShort)? >> 4 {
        4 => inet::header(bytes),
        6 => inet6::header(bytes),
        _ => Err(PacketError::Version),
    }
}

impl Packet {
    /// Reads a packet that starts with its IP header. Bytes after the length that the header states are ignored.
    #[inline]
    pub fn parse(bytes: &[u8], pass: Pass) -> Result<Packet, PacketError> {
        let mut packet = Packet::NOTHING;
        packet.read(bytes, pass).map(|()| packet)
    }

    /// As [`Self::parse`], in place of another packet, which saves a copy. Of a packet that it refuses nothing stays.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], pass: Pass) -> Result<(), PacketError> {
        let header = network_header(bytes)?;
        let whole = bytes.get(..usize::from(header.length)).ok_or(PacketError::Length)?;
        *self = bare(&header, pass);
        if !matches!(header.fragment, Fragment::Later { .. }) {
            transport::read(self, whole, header.payload)?;
        }
        Ok(())
    }
}

/// The packet without what follows from its transport header.
#[inline(always)]
fn bare(header: &NetworkHeader, pass: Pass) -> Packet {
    Packet {
        pass,
        family: header.family,
        protocol: header.protocol,
        source: header.source,
        destination: header.destination,
        source_port: 0,
        destination_port: 0,
        length: header.length,
        tos: header.tos,
        ttl: header.ttl,
        has_options: header.has_options,
        has_extensions: header.has_extensions,
        fragment: header.fragment,
        transport: Transport::Other,
        quoted: None,
        tag: 0,
    }
}
