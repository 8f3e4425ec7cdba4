//! The fence: rules of nftables by which the kernel forwards nothing between filtered interfaces and any other one.
//!
//! A filter judges only the packets that workers forward. The kernel would forward the others past the rules: those that
//! workers leave to it, and all packets while the router starts, hangs, or after it was killed. The fence drops them. Its
//! table belongs to the socket that made it, so that no other program removes it, and outlives that socket
//! (`NFT_TABLE_F_PERSIST`), so that the kernel forwards nothing after the router was killed. Each port has a chain of its name,
//! by which other routers see whether the fence concerns them.

mod message;
mod port;

use std::io;

use netlink_packet_core::NLMSG_ERROR;
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::set_socket_send_buffer_size_force;

use crate::netlink::decode::Messages;
pub use message::TABLE;
use message::{Batch, InterfaceTest};
pub use port::FencedPort;

/// Why there is no fence.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    #[error(
        "the kernel does not let this process change the table inet {TABLE}, by which it forwards nothing past the rules of a \
         filter: end the other router with a filter in this network namespace, or start this one as root"
    )]
    NotPermitted,
    #[error(
        "this kernel keeps no table of nftables for a process that ends: a filter beside a kernel needs Linux 6.9 or newer"
    )]
    OldKernel,
    #[error(
        "the table inet {TABLE}, by which the kernel forwards nothing past the rules of the filter, cannot be changed: {0}"
    )]
    Refused(#[from] io::Error),
}

/// The rules in the kernel. They stay when this value is dropped, unless [`Fence::remove`] removes them.
pub struct Fence {
    socket: Socket,
    ports: Vec<FencedPort>,
    sequence: u32,
}

impl Fence {
    /// Has the kernel forward nothing that comes in or leaves by these ports or their VLANs. A fence that a router left
    /// behind is replaced, without a moment in between.
    pub fn raise(ports: Vec<FencedPort>) -> Result<Fence, FenceError> {
        let mut fence = Fence::open()?;
        fence.replace(ports)?;
        Ok(fence)
    }

    /// Removes the fence that a killed router left. The kernel refuses it for as long as the router runs.
    pub fn remove_left() -> Result<(), FenceError> {
        Fence::open()?.remove()
    }

    fn open() -> Result<Fence, FenceError> {
        Ok(Fence { socket: Socket::new(NETLINK_NETFILTER)?, ports: Vec::new(), sequence: 1 })
    }

    /// Replaces the ports, if they or their VLANs are others.
    pub fn follow(&mut self, ports: Vec<FencedPort>) -> Result<(), FenceError> {
        if self.ports == ports { Ok(()) } else { self.replace(ports) }
    }

    /// Lets the kernel forward again.
    pub fn remove(mut self) -> Result<(), FenceError> {
        self.send(|batch| batch.delete_table())
    }

    fn replace(&mut self, ports: Vec<FencedPort>) -> Result<(), FenceError> {
        self.send(|batch| {
            // A table that is not there cannot be deleted, so it is made first. All is one transaction.
            batch.ensure_table();
            batch.delete_table();
            batch.add_owned_table();
            ports.iter().for_each(|port| add_chain(batch, port));
        })?;
        self.ports = ports;
        Ok(())
    }

    fn send(&mut self, fill: impl FnOnce(&mut Batch)) -> Result<(), FenceError> {
        let mut batch = Batch::begin(self.sequence);
        fill(&mut batch);
        let (bytes, last) = batch.end();
        self.sequence = last + 1;
        // The kernel takes a batch only if it fits into the buffer as a whole.
        set_socket_send_buffer_size_force(&self.socket, bytes.len())
            .map_err(|error| of_kernel(error.into()))?;
        self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        self.receive_result(last).map_err(of_kernel)
    }

    /// Waits for the acknowledgement of a message, or for an error about one before it.
    fn receive_result(&mut self, last: u32) -> io::Result<()> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in Messages(&bytes).filter(|message| message.message_type() == NLMSG_ERROR) {
                let code = message.payload().first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                match code {
                    0 if message.sequence_number() == last => return Ok(()),
                    0 => {}
                    _ => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
                }
            }
        }
    }
}

fn add_chain(batch: &mut Batch, port: &FencedPort) {
    batch.add_forward_chain(port.name());
    for prefix in port.prefixes() {
        InterfaceTest::ALL.iter().for_each(|test| batch.add_drop(port.name(), *test, &prefix));
    }
}

/// The kernel refuses changes of tables of others by `EPERM`, and flags that it does not know by `EOPNOTSUPP`.
fn of_kernel(error: io::Error) -> FenceError {
    match error.raw_os_error() {
        Some(libc::EPERM) => FenceError::NotPermitted,
        Some(libc::EOPNOTSUPP | libc::EINVAL) => FenceError::OldKernel,
        _ => FenceError::Refused(error),
    }
}
