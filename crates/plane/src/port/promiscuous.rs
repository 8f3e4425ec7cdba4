//! A network card that passes on every frame. By itself it passes on only those to addresses and VLANs that the kernel has
//! given it, and the kernel knows nothing of the groups, addresses and VLANs of a program that takes all frames by AF_XDP.

use super::PortError;
use super::link::Link;
use super::sys::Socket;

/// Keeps an interface in promiscuous mode as long as it exists, also if others keep it so.
pub struct PromiscuousMode {
    /// It has no protocol, so it receives nothing.
    _socket: Socket,
}

impl PromiscuousMode {
    /// Begins promiscuous mode.
    pub fn of(link: &Link) -> Result<PromiscuousMode, PortError> {
        let membership = libc::packet_mreq {
            mr_ifindex: link.index() as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let begin = || {
            let socket = Socket::raw(libc::AF_PACKET)?;
            socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)?;
            Ok(PromiscuousMode { _socket: socket })
        };
        begin().map_err(link.cannot("be put into promiscuous mode"))
    }
}
