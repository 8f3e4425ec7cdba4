//! What a network card does on its own.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use libc::c_int;

use super::socket::check;
use super::tun::request;

/// `ETHTOOL_GFLAGS` of linux/ethtool.h: asks which of some offloads are on.
const GET_FLAGS: u32 = 0x25;
/// `ETH_FLAG_RXVLAN`: tags are taken off frames that come in.
const STRIPS_TAGS: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Question {
    command: u32,
    answer: u32,
}

/// Whether the interface takes VLAN tags off the frames that come in.
pub fn strips_tags(interface: &str) -> io::Result<bool> {
    let mut question = Question { command: GET_FLAGS, answer: 0 };
    let mut request = request(interface, 0)?;
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    let socket = UnixDatagram::unbound()?; // any will do, but AF_XDP sockets pass no questions on
    // SAFETY: the kernel reads one `ifreq`, and reads and writes the question it points to; both live until the call
    // ends.
    match check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } as c_int)
    {
        Ok(_) => Ok(question.answer & STRIPS_TAGS != 0),
        // A driver without offloads has no answer.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}
