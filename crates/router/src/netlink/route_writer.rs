//! Writes routes into the kernel's main table, as a routing daemon does.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::NLMSG_ERROR;
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::decode::Messages;
use super::request::NetlinkRequest;
use super::socket::{Received, RouteSocket, SocketError};
use super::uapi;
use crate::route::LinkIndex;

/// Bytes of a batch, less than a socket takes in one call.
const BATCH: usize = 32 << 10;

/// The prefix of a route of either family: the first address, and how many bits of it count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoutePrefix {
    pub first: IpAddr,
    pub len: u8,
}

/// A change of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteWrite {
    /// The route exists afterwards, by this gateway alone.
    Replace(RoutePrefix, IpAddr),
    Remove(RoutePrefix),
}

/// Writes routes by one interface.
pub struct RouteWriter {
    socket: RouteSocket,
    link: LinkIndex,
    batch: Vec<u8>,
}

impl RouteWriter {
    /// Opens a socket in the network namespace of the calling thread; the writer may go to other threads.
    pub fn open(link: LinkIndex) -> Result<RouteWriter, SocketError> {
        Ok(RouteWriter { socket: RouteSocket::open(&[], None)?, link, batch: Vec::with_capacity(BATCH) })
    }

    /// Writes a change with others of its batch.
    pub fn write(&mut self, change: RouteWrite) -> Result<(), SocketError> {
        self.batch.extend_from_slice(&message(change, self.link));
        if self.batch.len() > BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes the batch. The kernel has applied it when this returns; an error is that of the first change it refused, or says that it
    /// refused more than the socket has room for.
    pub fn flush(&mut self) -> Result<(), SocketError> {
        let sent = if self.batch.is_empty() { Ok(()) } else { self.socket.send(&self.batch) };
        self.batch.clear();
        sent.and_then(|()| self.refusal())
    }

    /// The kernel answers what it refuses only. That some answers are lost is reported before those that are not.
    fn refusal(&mut self) -> Result<(), SocketError> {
        let (mut refused, mut lost) = (Ok(()), Ok(()));
        loop {
            match self.socket.receive()? {
                Received::Some(bytes) => refused = refused.and_then(|()| first_error(bytes)),
                Received::Lost => lost = Err(refusal(libc::ENOBUFS)),
                Received::Nothing => return refused.and(lost),
            }
        }
    }
}

fn first_error(bytes: &[u8]) -> Result<(), SocketError> {
    let errors = Messages(bytes).filter(|message| message.message_type() == NLMSG_ERROR);
    let codes = errors.filter_map(|message| Some(i32::from_ne_bytes(*message.payload().first_chunk()?)));
    let first = codes.into_iter().find(|code| *code != 0);
    first.map_or(Ok(()), |code| Err(refusal(code.saturating_neg())))
}

fn refusal(code: i32) -> SocketError {
    SocketError::RefusedRoute { source: io::Error::from_raw_os_error(code) }
}

fn message(change: RouteWrite, link: LinkIndex) -> Vec<u8> {
    let (RouteWrite::Replace(prefix, _) | RouteWrite::Remove(prefix)) = change;
    let mut route = RouteMessage::default();
    route.header.address_family =
        if prefix.first.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    route.header.destination_prefix_length = prefix.len;
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.attributes.push(RouteAttribute::Destination(prefix.first.into()));
    let (message, flags) = match change {
        RouteWrite::Replace(_, gateway) => {
            route.header.protocol = RouteProtocol::Static;
            route.header.scope = RouteScope::Universe;
            route.header.kind = RouteType::Unicast;
            route.attributes.push(RouteAttribute::Gateway(gateway.into()));
            route.attributes.push(RouteAttribute::Oif(link));
            (RouteNetlinkMessage::NewRoute(route), uapi::NLM_F_CREATE | uapi::NLM_F_REPLACE)
        }
        RouteWrite::Remove(_) => {
            route.header.scope = RouteScope::NoWhere;
            (RouteNetlinkMessage::DelRoute(route), 0)
        }
    };
    NetlinkRequest::Known(message).message(flags, 0)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn prefix() -> RoutePrefix {
        RoutePrefix { first: Ipv4Addr::new(198, 18, 0, 0).into(), len: 15 }
    }

    #[test]
    fn a_route_is_written_with_its_gateway_and_removed_by_its_prefix() {
        let bytes = message(RouteWrite::Replace(prefix(), Ipv4Addr::new(10, 0, 2, 2).into()), 7);
        let head = [52, 0, 0, 0, 24, 0, 1, 5];
        let body = [2, 15, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
        let attributes = [8, 0, 1, 0, 198, 18, 0, 0, 8, 0, 5, 0, 10, 0, 2, 2, 8, 0, 4, 0, 7, 0, 0, 0];
        assert_eq!(bytes.get(..8), Some(&head[..]));
        assert_eq!(bytes.get(16..), Some(&[&body[..], &attributes].concat()[..]));
        let inet6 = RoutePrefix { first: "2001:db8::".parse().unwrap(), len: 32 };
        let bytes = message(RouteWrite::Replace(inet6, "2001:2::2".parse().unwrap()), 7);
        assert_eq!(bytes.get(16..20), Some(&[10, 32, 0, 0][..]));
        assert_eq!(bytes.len(), 16 + 12 + 20 + 20 + 8);
        let bytes = message(RouteWrite::Remove(prefix()), 7);
        assert_eq!(bytes.get(4..8), Some(&[25, 0, 1, 0][..]));
        assert_eq!(bytes.get(16..28), Some(&[2, 15, 0, 0, 254, 0, 255, 0, 0, 0, 0, 0][..]));
    }

    /// A batch has more routes than the socket has room for answers. No link has this number, and without privileges the kernel
    /// refuses them for that.
    #[test]
    fn a_batch_that_is_refused_whole_is_an_error() {
        let mut writer = RouteWriter::open(i32::MAX as LinkIndex).unwrap();
        let route = RouteWrite::Replace(prefix(), Ipv4Addr::new(10, 0, 2, 2).into());
        while writer.batch.len() < BATCH {
            writer.batch.extend_from_slice(&message(route, writer.link));
        }
        let error = writer.flush().unwrap_err();
        assert!(matches!(error, SocketError::RefusedRoute { .. }), "{error}");
        assert!(writer.flush().is_ok(), "nothing is left to be read");
    }

    #[test]
    fn an_acknowledgement_is_no_error() {
        let reply = |code: i32| {
            let header = [&36u32.to_ne_bytes()[..], &NLMSG_ERROR.to_ne_bytes(), &[0; 10]].concat();
            [&header[..], &code.to_ne_bytes(), &[0; 16]].concat()
        };
        assert!(first_error(&reply(0)).is_ok());
        let error = first_error(&[reply(0), reply(-101)].concat()).unwrap_err();
        assert!(error.to_string().contains("refuses a route"), "{error}");
    }
}
