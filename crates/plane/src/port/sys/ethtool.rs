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

/// `ETHTOOL_GCHANNELS`: asks how many queues there are.
const GET_CHANNELS: u32 = 0x3c;

/// A question, which the kernel writes the answer into.
///
/// # Safety
///
/// It is `repr(C)`, and as long as what the kernel reads and writes for its command; any answer is a valid value.
unsafe trait EthtoolCommand {}

// SAFETY: it is `struct ethtool_value`, which `ETHTOOL_GFLAGS` takes: two words.
unsafe impl EthtoolCommand for Flags {}
// SAFETY: it is `struct ethtool_channels`, which `ETHTOOL_GCHANNELS` takes: nine words.
unsafe impl EthtoolCommand for Channels {}

/// `struct ethtool_value`.
#[repr(C)]
struct Flags {
    command: u32,
    answer: u32,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    /// At most: receive, transmit, other, combined.
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Whether the interface takes VLAN tags off the frames that come in.
pub fn strips_tags(interface: &str) -> io::Result<bool> {
    let flags = ask(interface, Flags { command: GET_FLAGS, answer: 0 })?;
    Ok(flags.is_some_and(|flags| flags.answer & STRIPS_TAGS != 0))
}

/// How many queues frames come in by.
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    let channels = ask(interface, Channels { command: GET_CHANNELS, ..Channels::default() })?;
    Ok(channels.map_or(1, |channels| (channels.receive + channels.combined).max(1)))
}

/// The answer; `None` if the driver has none.
fn ask<Q: EthtoolCommand>(interface: &str, mut question: Q) -> io::Result<Option<Q>> {
    let mut request = request(interface, 0)?;
    request.ifr_ifru.ifru_data = (&raw mut question).cast();
    let socket = UnixDatagram::unbound()?; // any will do, but AF_XDP sockets pass no questions on
    // SAFETY: the kernel reads one `ifreq`, and reads and writes the question it points to, which is as long as its
    // command says; both live until the call ends.
    match check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } as c_int)
    {
        Ok(_) => Ok(Some(question)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}
