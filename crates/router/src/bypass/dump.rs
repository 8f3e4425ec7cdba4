//! Lists of the kernel, over netlink of any family. A subsystem that the kernel does not have has an empty list.

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};
use netlink_sys::{Socket, SocketAddr};

use crate::netlink::decode::Messages;

const SEQUENCE: u32 = 1;
/// The length of the header of a message (struct nlmsghdr).
const HEADER: u32 = 16;

/// The errors with which kernels answer that they lack a protocol, a subsystem or an attached list.
const NOT_THERE: [i32; 6] =
    [libc::EPROTONOSUPPORT, libc::EOPNOTSUPP, libc::EINVAL, libc::ENOENT, libc::EAFNOSUPPORT, libc::ENODEV];

/// The bodies of all messages that answer a request to list; `protocol` is `NETLINK_`, `body` what follows the header.
pub fn dump(protocol: isize, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    match all(protocol, kind, body) {
        Err(error) if error.raw_os_error().is_some_and(|code| NOT_THERE.contains(&code)) => Ok(Vec::new()),
        result => result,
    }
}

fn all(protocol: isize, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = Socket::new(protocol)?;
    socket.send_to(&request(kind, body), &SocketAddr::new(0, 0), 0)?;
    let mut bodies = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        for message in Messages(&bytes) {
            match message.message_type() {
                NLMSG_DONE => return Ok(bodies),
                NLMSG_ERROR => return failure(message.payload()).map_or(Ok(bodies), Err),
                _ => bodies.push(message.payload().to_vec()),
            }
        }
    }
}

fn request(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = HEADER + u32::try_from(body.len()).unwrap_or_default();
    let flags = NLM_F_REQUEST | NLM_F_DUMP;
    [
        &len.to_ne_bytes()[..],
        &kind.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &SEQUENCE.to_ne_bytes(),
        &[0; 4],
        body,
    ]
    .concat()
}

/// The error that a message of type `NLMSG_ERROR` begins with; `None` is an acknowledgement.
fn failure(body: &[u8]) -> Option<io::Error> {
    let code = i32::from_ne_bytes(*body.first_chunk()?);
    (code != 0).then(|| io::Error::from_raw_os_error(code.saturating_neg()))
}
