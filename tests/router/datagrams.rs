//! Datagrams that pass a router, or do not.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fullview_testnet::Node;

/// How long a datagram may take. On a busy machine a router waits for its turn.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

pub fn socket(host: &Node, address: &str) -> UdpSocket {
    let socket = host.udp(address);
    socket.set_read_timeout(Some(ON_ITS_WAY)).unwrap();
    socket
}

/// A datagram that is under way.
pub struct Sent<'a> {
    number: [u8; 4],
    to: &'a UdpSocket,
}

impl Sent<'_> {
    /// Whether it arrives before the receiver's socket waits no longer. Earlier ones may be late.
    pub fn arrives(&self) -> bool {
        let mut room = [0; 64];
        let mut received =
            std::iter::from_fn(|| self.to.recv(&mut room).ok().map(|len| room[..len].to_vec()));
        received.any(|one| one == self.number)
    }
}

pub fn send<'a>(from: &UdpSocket, to: &'a UdpSocket) -> Sent<'a> {
    static SENT: AtomicU32 = AtomicU32::new(0);
    let number = SENT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let _ = from.send_to(&number, to.local_addr().unwrap());
    Sent { number, to }
}

/// Sends once; returns whether this datagram arrives soon.
pub fn passes(from: &UdpSocket, to: &UdpSocket) -> bool {
    send(from, to).arrives()
}
