//! Packet sockets, which send and capture whole frames.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::IntoRawFd;
use std::time::{Duration, Instant};

use pnet_datalink::{Channel, Config, DataLinkReceiver, DataLinkSender, channel, interfaces};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};

/// The time after which a receiver looks whether its deadline has passed.
const POLL: Duration = Duration::from_millis(20);
/// Bytes of memory for frames that wait. A frame that a program in the kernel made takes a page: of the usual room fifty of
/// them fill all.
const ROOM: usize = 16 << 20;
/// All protocols (`ETH_P_ALL`), in network byte order.
const EVERY_PROTOCOL: Option<NonZeroU32> = NonZeroU32::new(0x0003_u16.to_be() as u32);

/// A socket for the frames of one interface.
pub struct PacketSocket {
    sender: Box<dyn DataLinkSender>,
    receiver: Box<dyn DataLinkReceiver>,
}

impl PacketSocket {
    /// Opens a socket on an interface of the calling thread's namespace.
    pub fn open(name: &str) -> PacketSocket {
        let interface = interfaces().into_iter().find(|interface| interface.name == name);
        let interface = interface.unwrap_or_else(|| panic!("there is no interface {name}"));
        // The channel closes the socket.
        let socket_fd = Some(roomy_socket().unwrap_or_else(|error| panic!("a socket on {name}: {error}")));
        match channel(&interface, Config { read_timeout: Some(POLL), socket_fd, ..Config::default() }) {
            Ok(Channel::Ethernet(sender, receiver)) => PacketSocket { sender, receiver },
            Ok(_) => panic!("{name} is not Ethernet"),
            Err(error) => panic!("a socket on {name}: {error}"),
        }
    }

    /// Sends a frame. The error is the kernel's: for example, the frame is longer than the interface allows.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.sender.send_to(frame, None).expect("the frame fits into the socket's buffer")
    }

    /// Returns the next frame, or `None` if none arrives before the deadline.
    pub fn receive(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            match self.receiver.next() {
                Ok(frame) => return Some(frame.to_vec()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut && Instant::now() < deadline => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return None,
                Err(error) => panic!("receiving: {error}"),
            }
        }
    }
}

fn roomy_socket() -> io::Result<i32> {
    let every = EVERY_PROTOCOL.map(Protocol::from_raw);
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, every)?;
    set_socket_recv_buffer_size_force(&socket, ROOM)?;
    Ok(socket.into_raw_fd())
}
