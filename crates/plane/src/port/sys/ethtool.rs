//! Settings of a network card, by ethtool.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use libc::c_int;

use super::socket::check;
use super::tun::request;

/// `ETHTOOL_GFLAGS` of linux/ethtool.h: reads the flags of some offloads.
const GET_FLAGS: u32 = 0x25;
/// `ETH_FLAG_RXVLAN`: the card strips tags from received frames.
const STRIPS_TAGS: u32 = 1 << 8;

/// `ETH_FLAG_LRO`: the card merges received frames.
const MERGES_FRAMES: u32 = 1 << 15;

/// `ETHTOOL_GGRO`: reads whether the kernel merges received frames.
const GET_GRO: u32 = 0x2b;

/// `ETHTOOL_GDRVINFO`: reads the name of the driver.
const GET_DRIVER: u32 = 3;

/// `ETHTOOL_GCHANNELS`: reads the numbers of queues.
const GET_CHANNELS: u32 = 0x3c;

/// A command structure, into which the kernel writes its answer.
///
/// # Safety
///
/// The type is `repr(C)`, as long as what the kernel reads and writes for its command, and any bytes are a valid value.
unsafe trait EthtoolCommand {}

// SAFETY: this is `struct ethtool_value`, which `ETHTOOL_GFLAGS` and `ETHTOOL_GGRO` take: two words.
unsafe impl EthtoolCommand for Flags {}
// SAFETY: this is `struct ethtool_channels`, which `ETHTOOL_GCHANNELS` takes: nine words.
unsafe impl EthtoolCommand for Channels {}

// SAFETY: this is `struct ethtool_drvinfo`, which `ETHTOOL_GDRVINFO` takes: a word, 172 bytes of text and five words.
unsafe impl EthtoolCommand for Driver {}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; 32],
    versions_and_bus: [u8; 140],
    counts: [u32; 5],
}

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
    /// The maxima: receive, transmit, other, combined.
    maxima: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// Whether the interface strips VLAN tags from received frames.
pub fn strips_tags(interface: &str) -> io::Result<bool> {
    has_flag(interface, STRIPS_TAGS)
}

/// Whether the card merges received frames (LRO).
pub fn merges_frames(interface: &str) -> io::Result<bool> {
    has_flag(interface, MERGES_FRAMES)
}

/// Whether the kernel merges received frames (GRO).
pub fn runs_gro(interface: &str) -> io::Result<bool> {
    let gro = run(interface, Flags { command: GET_GRO, answer: 0 })?;
    Ok(gro.is_some_and(|gro| gro.answer != 0))
}

fn has_flag(interface: &str, flag: u32) -> io::Result<bool> {
    let flags = run(interface, Flags { command: GET_FLAGS, answer: 0 })?;
    Ok(flags.is_some_and(|flags| flags.answer & flag != 0))
}

/// The name of the driver; empty if the driver does not report it.
pub fn driver(interface: &str) -> io::Result<String> {
    let nothing = Driver { command: GET_DRIVER, name: [0; 32], versions_and_bus: [0; 140], counts: [0; 5] };
    let name = run(interface, nothing)?.map_or([0; 32], |driver| driver.name);
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..len]).into_owned())
}

/// The number of receive queues.
pub fn receive_queues(interface: &str) -> io::Result<u32> {
    let channels = run(interface, Channels { command: GET_CHANNELS, ..Channels::default() })?;
    Ok(channels.map_or(1, |channels| (channels.receive + channels.combined).max(1)))
}

/// Runs a command; `None` if the driver does not support it.
fn run<Q: EthtoolCommand>(interface: &str, mut command: Q) -> io::Result<Option<Q>> {
    let mut request = request(interface, 0)?;
    request.ifr_ifru.ifru_data = (&raw mut command).cast();
    let socket = UnixDatagram::unbound()?; // any socket except AF_XDP, which does not handle this ioctl
    // SAFETY: the kernel reads one `ifreq`, and reads and writes the structure it points to, which has the length of its
    // command; both live until the call ends.
    match check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) } as c_int)
    {
        Ok(_) => Ok(Some(command)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}
