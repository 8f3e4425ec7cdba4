//! The socket by which a collector is reached.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::log;

/// Sends datagrams, and never waits.
pub struct Collector {
    address: SocketAddr,
    socket: Option<UdpSocket>,
    /// Whether the log says that there is no way to the collector.
    is_reported: bool,
}

impl Collector {
    pub fn new(address: SocketAddr) -> Collector {
        Collector { address, socket: None, is_reported: false }
    }

    /// Whether the next datagram is the first of a new socket, from another port than those before.
    pub fn has_no_socket(&self) -> bool {
        self.socket.is_none()
    }

    /// Sends the datagram that `encode` makes for the socket's own address. It is lost if it cannot be sent now; returns
    /// whether it was sent.
    pub fn send(&mut self, encode: impl FnOnce(IpAddr) -> Vec<u8>) -> bool {
        let sent = self.try_send(encode);
        match &sent {
            Ok(()) => self.is_reported = false,
            // The socket's buffer is full, or an earlier datagram found no collector. The sequence number shows what is lost.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
            Err(error) => self.report(error),
        }
        sent.is_ok()
    }

    fn try_send(&mut self, encode: impl FnOnce(IpAddr) -> Vec<u8>) -> std::io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => connect(self.address)?,
        };
        let own = socket.local_addr()?.ip();
        self.socket.insert(socket).send(&encode(own)).map(drop)
    }

    /// The next datagram gets a new socket, whose own address follows from the routes of then.
    fn report(&mut self, error: &std::io::Error) {
        self.socket = None;
        if !std::mem::replace(&mut self.is_reported, true) {
            log::warning(&format!("export: {}: {error}; samples are lost", self.address));
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    Ok(socket)
}
