//! Ports receive and send packets, whatever their content.
//!
//! The slots of an arena circulate: a port gets a free slot (`recycle`), fills it with a frame (`receive`), sends the frame
//! (`transmit`) and returns the free slot (`reclaim`). The receive side and the transmit side of a port are independent:
//! with memory ports, another port waits for the slots that this port returns.

use std::path::PathBuf;

use crate::burst::Burst;
pub use crate::port_losses::PortLosses;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod classify;
#[cfg(target_os = "linux")]
mod frame_clock;
mod large_frame;
#[cfg(target_os = "linux")]
pub mod link;
#[cfg(target_os = "linux")]
pub mod memif;
pub mod memory;
#[cfg(target_os = "linux")]
mod offload;
#[cfg(target_os = "linux")]
pub mod packet;
#[cfg(target_os = "linux")]
mod packet_end;
pub mod pcap;
#[cfg(target_os = "linux")]
mod port_slots;
#[cfg(target_os = "linux")]
pub mod promiscuous;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod reinject;
#[cfg(target_os = "linux")]
pub mod spread;
#[cfg(target_os = "linux")]
pub(crate) mod sys;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod timed;
#[cfg(target_os = "linux")]
pub mod umem;
#[cfg(target_os = "linux")]
pub mod xdp;

#[cfg(all(feature = "bpf", target_os = "linux"))]
pub use sys::SharedWords;

/// A port of one worker.
pub trait Port<'a> {
    /// Adds up to `limit` received packets to `burst`, as far as it has room, writes this port's number into them
    /// ([`crate::burst::Slot::port`]), and returns how many. 0 means that
    /// no packet has arrived yet, or that none ever will: see [`Port::is_finished`].
    ///
    /// # Errors
    /// Packets that were added before the error stay in `burst` and count as received.
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError>;

    /// Takes packets from the front of `burst` to send them, and returns how many. Packets that it has no room for now stay
    /// in `burst` and are counted in [`Port::refused`].
    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError>;

    /// Adds the slots of sent frames to `free`, as far as it has room, and returns how many.
    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize;

    /// Takes free slots for the receive side, and returns how many. Slots that it has no room for stay in `free`.
    fn recycle(&mut self, free: &mut Burst<'a>) -> usize;

    /// Packets that [`Port::transmit`] had no room for, counted each time they were offered.
    fn refused(&self) -> u64;

    /// Whether the port will never receive a packet again.
    fn is_finished(&self) -> bool;

    /// Frames lost since the last call because the port had no room for them. It may take a system call.
    ///
    /// # Errors
    /// Fails with the error of the system call.
    fn overruns(&mut self) -> Result<u64, PortError>;

    /// Frames that the port dropped since the last call.
    fn losses(&mut self) -> PortLosses;

    /// How many frames may wait to be received of which the port does not know when they came in. Other ports leave old ones
    /// out themselves, or have none.
    fn undated(&mut self) -> usize {
        0
    }

    /// Whether packets wait in the port to be sent. They are lost when the port is closed.
    fn has_unsent(&mut self) -> bool;
}

/// Why a port failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// An operation on an interface failed.
    #[error("interface {interface} cannot {action}: {source}; {hint}")]
    Interface {
        /// Its name.
        interface: String,
        /// The operation.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
        /// How to fix it.
        hint: &'static str,
    },
    /// The interface is loopback, a tunnel or something else whose frames have no Ethernet header.
    #[error("interface {interface} is no Ethernet interface; packets are forwarded between those only")]
    NotEthernet {
        /// Its name.
        interface: String,
    },
    /// The interface has another name.
    #[error("{name} is another name of interface {own}; give that one")]
    AlternativeName {
        /// The alternative name.
        name: String,
        /// The interface's own name.
        own: String,
    },
    /// The network card strips VLAN tags, and an AF_XDP socket would not see them.
    #[error(
        "interface {interface} strips VLAN tags before an AF_XDP socket sees the frames, so that tagged and \
         untagged ones look the same; `ethtool -K {interface} rxvlan off` (and with veth, `txvlan off tx off` at \
         the other end, which leaves checksums unfinished too) keeps them"
    )]
    StripsTags {
        /// Its name.
        interface: String,
    },
    /// The link is down; the port works again when the link is up.
    #[error("interface {interface} is down; `ip link set dev {interface} up` brings it up")]
    Down {
        /// Its name.
        interface: String,
    },
    /// The interface was removed, and the port is finished.
    #[error("interface {interface} was removed")]
    Removed {
        /// Its name.
        interface: String,
    },
    /// A file could not be opened, created, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not a usable capture.
    #[error("{}: {problem}", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// What is wrong, and how to fix it.
        problem: String,
    },
    /// One packet of a capture cannot be used.
    #[error("{}: packet {number}: {problem}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The number of the packet, from 1.
        number: u64,
        /// What is wrong, and how to fix it.
        problem: String,
    },
}
