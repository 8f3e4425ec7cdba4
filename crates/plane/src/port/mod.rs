//! In and out. A port moves packets; what is in them does not concern it.
//!
//! Packets come from one stretch of memory and go round: a free slot is handed to a port (`recycle`), which fills it
//! with a frame (`receive`); the frame goes out (`transmit`) and its slot comes back free (`reclaim`). Receive side and
//! transmit side of one port are independent: with memory ports the slots that one port gives back are what another
//! port is waiting for.

use std::path::PathBuf;

use crate::burst::Burst;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod classify;
#[cfg(target_os = "linux")]
pub mod link;
#[cfg(target_os = "linux")]
pub mod memif;
pub mod memory;
#[cfg(target_os = "linux")]
mod offload;
#[cfg(target_os = "linux")]
pub mod packet;
pub mod pcap;
#[cfg(target_os = "linux")]
mod port_slots;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod reinject;
#[cfg(target_os = "linux")]
pub(crate) mod sys;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod umem;
#[cfg(target_os = "linux")]
pub mod xdp;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use sys::SharedWords;

/// A port.
pub trait Port<'a> {
    /// Adds up to `limit` received packets to `burst`, as far as it has room, writes this port's number into them
    /// ([`crate::burst::Slot::port`]), and returns how many. 0 means that
    /// nothing has come in yet, or that nothing ever will: see [`Port::is_finished`].
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError>;

    /// Takes packets from the front of `burst` to send them, and returns how many. Those that do not fit now stay in
    /// `burst`, and are counted in [`Port::refused`].
    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError>;

    /// Adds slots whose frames are sent to `free`, as far as it has room, and returns how many.
    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize;

    /// Takes free slots for the receive side, and returns how many. Those it has no room for stay in `free`.
    fn recycle(&mut self, free: &mut Burst<'a>) -> usize;

    /// Packets that [`Port::transmit`] could not take, counted each time they were offered.
    fn refused(&self) -> u64;

    /// Whether nothing will ever be received again.
    fn is_finished(&self) -> bool;

    /// Frames that came in and found no room since this was asked last. It may cost a system call.
    ///
    /// # Errors
    /// What the system says when it is asked.
    fn overruns(&mut self) -> Result<u64, PortError>;

    /// Whether packets that it took wait in it for somebody to send them: they are lost when it is closed.
    fn has_unsent(&mut self) -> bool;
}

/// Why a port failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// An interface cannot be used.
    #[error("interface {interface} cannot {action}: {source}; {hint}")]
    Interface {
        /// Its name.
        interface: String,
        /// What was to be done.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The interface is loopback, a tunnel or something else whose frames have no Ethernet header.
    #[error("interface {interface} is no Ethernet interface; packets are forwarded between those only")]
    NotEthernet {
        /// Its name.
        interface: String,
    },
    /// The card takes VLAN tags off, and an AF_XDP socket would not know of them.
    #[error(
        "interface {interface} takes VLAN tags off before an AF_XDP socket sees the frames, so that tagged and \
         untagged ones look the same; `ethtool -K {interface} rxvlan off` (and with veth, `txvlan off` at the other \
         end) has them left on"
    )]
    StripsTags {
        /// Its name.
        interface: String,
    },
    /// The link is down; the port goes on when it is up again.
    #[error("interface {interface} is down; `ip link set dev {interface} up` brings it up")]
    Down {
        /// Its name.
        interface: String,
    },
    /// The interface is no more; neither is the port.
    #[error("interface {interface} was removed")]
    Removed {
        /// Its name.
        interface: String,
    },
    /// A file could not be opened, created, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not a capture that can be used.
    #[error("{}: {problem}", path.display())]
    NotACapture {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// One packet of a capture cannot be used.
    #[error("{}: packet {number}: {problem}", path.display())]
    Record {
        /// Which file.
        path: PathBuf,
        /// Which packet, counted from 1.
        number: u64,
        /// What is wrong, and what to do.
        problem: String,
    },
}
