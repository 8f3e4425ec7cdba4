//! Netlink sockets of the family `NETLINK_ROUTE`: requests, and what the kernel sends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::uapi;

/// Bytes for what one call receives: the kernel fills up to 32 KiB of a dump at a time, if it is offered as much.
const BUFFER: usize = 64 << 10;

/// Why the kernel cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No socket, or not as asked for.
    #[error("netlink: {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel refuses a request.
    #[error("netlink: the kernel refuses to list {what}: {source}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What a call of [`Socket::receive`] brought.
pub enum Received<'a> {
    /// Messages.
    Some(&'a [u8]),
    /// Nothing is there now.
    Nothing,
    /// The kernel had more to say than fits: some messages are lost.
    Lost,
}

/// A socket.
pub struct Socket {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> SocketError {
    move |errno| SocketError::System { what, source: errno.into() }
}

impl Socket {
    /// A socket that is told of changes to these groups (`RTNLGRP_`). `receive_buffer` is in bytes; root may have more
    /// than the system's limit.
    pub fn open(groups: &[u32], receive_buffer: Option<usize>) -> Result<Socket, SocketError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 is NETLINK_ROUTE.
        let fd = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
            .map_err(failed("no socket"))?;
        if let Some(bytes) = receive_buffer {
            sockopt::set_socket_recv_buffer_size_force(&fd, bytes)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, bytes))
                .map_err(failed("the size of the receive buffer"))?;
        }
        let groups = groups.iter().fold(0, |mask, group| mask | 1u32 << (group - 1));
        net::bind(&fd, &SocketAddrNetlink::new(0, groups)).map_err(failed("bind"))?;
        Ok(Socket { fd, buffer: vec![0; BUFFER] })
    }

    /// What the kernel sent. What somebody else sent is passed over.
    pub fn receive(&mut self) -> Result<Received<'_>, SocketError> {
        loop {
            match net::recvfrom(&self.fd, &mut *self.buffer, RecvFlags::TRUNC) {
                Ok((_, len, _)) if len > self.buffer.len() => return Ok(Received::Lost),
                Ok((len, _, from)) => {
                    if is_kernel(from) {
                        return Ok(Received::Some(self.buffer.get(..len).unwrap_or_default()));
                    }
                }
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                Err(Errno::NOBUFS) => return Ok(Received::Lost),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("receive")(errno)),
            }
        }
    }

    /// Sends one message.
    pub fn send(&self, kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Result<(), SocketError> {
        let len = 16 + body.len() as u32;
        let mut message = Vec::with_capacity(len as usize);
        message.extend(len.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((uapi::NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        let to = SocketAddrNetlink::new(0, 0);
        net::sendto(&self.fd, &message, SendFlags::empty(), &to).map_err(failed("send")).map(drop)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel has port 0.
fn is_kernel(from: Option<net::SocketAddrAny>) -> bool {
    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
    from.is_some_and(|from| from.pid() == 0)
}
