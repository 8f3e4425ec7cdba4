//! A netlink socket of the family `NETLINK_ROUTE`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt;

/// Bytes for what one call receives: the kernel fills up to 32 KiB of a dump at a time if it is offered that much.
const BUFFER: usize = 64 << 10;

/// The port of the kernel.
const KERNEL_PORT: u32 = 0;

/// A request to the kernel failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A system call failed.
    #[error("netlink: {what}: {source}")]
    System {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refuses a request.
    #[error("netlink: the kernel refuses to list {what}: {source}")]
    Refused {
        /// The part that was to be listed.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refuses a route.
    #[error("netlink: the kernel refuses a route: {source}")]
    RefusedRoute {
        /// The kernel's error.
        source: io::Error,
    },
}

/// The result of one call of [`RouteSocket::receive`].
pub enum Received<'a> {
    /// One or more messages.
    Some(&'a [u8]),
    /// No message is there now.
    Nothing,
    /// The receive buffer was full: the kernel dropped some messages.
    Lost,
}

/// A non-blocking socket with a buffer for what it receives.
pub struct RouteSocket {
    socket: Socket,
    buffer: Vec<u8>,
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> SocketError {
    move |source| SocketError::System { what, source }
}

impl RouteSocket {
    /// Opens a socket that receives changes of these multicast groups (`RTNLGRP_`). `receive_buffer` is in bytes; root
    /// may have more than the system's limit.
    pub fn open(groups: &[u32], receive_buffer: Option<usize>) -> Result<RouteSocket, SocketError> {
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed("no socket"))?;
        socket.set_non_blocking(true).map_err(failed("no non-blocking socket"))?;
        if let Some(bytes) = receive_buffer {
            // `netlink-sys` has no SO_RCVBUFFORCE.
            sockopt::set_socket_recv_buffer_size_force(&socket, bytes)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, bytes))
                .map_err(|errno| failed("the size of the receive buffer")(errno.into()))?;
        }
        let groups = groups.iter().fold(0, |mask, group| mask | 1u32 << (group - 1));
        socket.bind(&SocketAddr::new(0, groups)).map_err(failed("bind"))?;
        Ok(RouteSocket { socket, buffer: vec![0; BUFFER] })
    }

    /// The next messages of the kernel. Messages of other processes are skipped.
    pub fn receive(&mut self) -> Result<Received<'_>, SocketError> {
        loop {
            let received = self.socket.recv_from(&mut self.buffer.as_mut_slice(), libc::MSG_TRUNC);
            match received {
                Ok((len, _)) if len > self.buffer.len() => return Ok(Received::Lost),
                Ok((len, from)) if from.port_number() == KERNEL_PORT => {
                    return Ok(Received::Some(self.buffer.get(..len).unwrap_or_default()));
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(Received::Nothing),
                    Some(libc::ENOBUFS) => return Ok(Received::Lost),
                    Some(libc::EINTR) => {}
                    _ => return Err(failed("receive")(error)),
                },
            }
        }
    }

    /// Reads and drops the messages that wait. After [`Received::Lost`] these are older than those that were lost.
    pub fn discard(&mut self) -> Result<(), SocketError> {
        while !matches!(self.receive()?, Received::Nothing) {}
        Ok(())
    }

    /// Sends messages to the kernel, as many as a socket takes in one call.
    pub fn send(&self, messages: &[u8]) -> Result<(), SocketError> {
        self.socket.send_to(messages, &SocketAddr::new(KERNEL_PORT, 0), 0).map_err(failed("send")).map(drop)
    }
}

impl AsFd for RouteSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
