//! TAP interfaces, and settings of interfaces by ioctl.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use libc::{c_char, c_int, c_short, ifreq};

use super::socket::check;

/// Creates a TAP interface, or adds a queue to one of this process. The interface disappears with its last file. Returns
/// the file and the name, in which `%d` became a number.
pub fn create(name: &str, has_queues: bool) -> io::Result<(File, String)> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let queues = if has_queues { libc::IFF_MULTI_QUEUE } else { 0 };
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | queues;
    let mut request = request(name, flags as c_short)?;
    // SAFETY: the kernel reads and writes one `ifreq`, which lives until the call ends.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } as c_int)?;
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8);
    Ok((file, String::from_utf8_lossy(&name.collect::<Vec<_>>()).into_owned()))
}

/// Sets the MTU of an interface.
pub fn set_mtu(name: &str, mtu: u32) -> io::Result<()> {
    let mut request = request(name, 0)?;
    request.ifr_ifru.ifru_mtu = c_int::try_from(mtu).map_err(io::Error::other)?;
    run(request, libc::SIOCSIFMTU).map(drop)
}

/// The MAC address of an interface; `None` for other interfaces than Ethernet, such as loopback and tunnels.
pub fn mac(name: &str) -> io::Result<Option<[u8; 6]>> {
    let answer = run(request(name, 0)?, libc::SIOCGIFHWADDR)?;
    // SAFETY: the kernel wrote an address there; before that, all bytes were zeros, which is a valid address.
    let libc::sockaddr { sa_family: kind, sa_data: bytes } = unsafe { answer.ifr_ifru.ifru_hwaddr };
    Ok((kind == libc::ARPHRD_ETHER).then(|| std::array::from_fn(|at| bytes[at] as u8)))
}

/// Whether an interface is up and has a carrier.
pub fn is_running(name: &str) -> io::Result<bool> {
    let answer = run(request(name, 0)?, libc::SIOCGIFFLAGS)?;
    // SAFETY: the kernel wrote flags there; before that, all bytes were zeros, which are valid flags.
    let flags = c_int::from(unsafe { answer.ifr_ifru.ifru_flags });
    let running = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags & running == running)
}

/// Runs an ioctl on an interface and returns the request with the answer.
fn run(mut request: ifreq, what: libc::c_ulong) -> io::Result<ifreq> {
    let socket = UnixDatagram::unbound()?; // any socket will do
    // SAFETY: the kernel reads and writes one `ifreq`, which lives until the call ends.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) } as c_int)?;
    Ok(request)
}

/// A request about the interface of that name.
pub fn request(name: &str, flags: c_short) -> io::Result<ifreq> {
    // SAFETY: the structure has only names and numbers, for which all zeros is a valid value.
    let mut request: ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || name.bytes().any(|byte| byte == 0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an interface name has at most 15 bytes, none of them zero",
        ));
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as c_char;
    }
    request.ifr_ifru.ifru_flags = flags;
    Ok(request)
}
