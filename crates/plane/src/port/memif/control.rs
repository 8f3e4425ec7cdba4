//! The control channel: connects to a server, and detects the end of the connection.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};

use super::message::{self, SIZE, ServerMessage};

/// How long a server may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The server and interface to connect to.
pub struct MemifAddress<'r> {
    /// The server's socket; a name that begins with `@` is in the abstract namespace.
    pub socket: &'r str,
    /// The number of the server's interface.
    pub id: u32,
    /// The secret that the server is configured with; empty for none.
    pub secret: &'r str,
}

/// The memory and rings that a client provides.
pub struct MemoryOffer<'o> {
    pub memory: BorrowedFd<'o>,
    pub bytes: u64,
    /// Offset and event of the ring to the server, and of the ring from it.
    pub rings: [(u32, BorrowedFd<'o>); 2],
    pub log2_ring: u8,
}

/// A connection to a server. When it ends, so does the exchange of packets.
pub struct ControlChannel(OwnedFd);

impl ControlChannel {
    /// Connects, and returns the logarithm of the largest ring that the server allows.
    pub fn open(request: &MemifAddress<'_>) -> io::Result<(ControlChannel, u8)> {
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let address = match request.socket.strip_prefix('@') {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            None => SocketAddrUnix::new(request.socket)?,
        };
        connect(&fd, &address)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        let control = ControlChannel(fd);
        match control.receive()? {
            ServerMessage::Hello { is_compatible: true, max_log2_ring } => Ok((control, max_log2_ring)),
            ServerMessage::Hello { .. } => Err(io::Error::other("it does not support version 2 of memif")),
            other => Err(unexpected(other)),
        }
    }

    /// Gives memory and rings to the server.
    pub fn offer(&self, request: &MemifAddress<'_>, offer: &MemoryOffer<'_>) -> io::Result<()> {
        self.request(&message::init(request.id, NAME, request.secret), None)?;
        self.request(&message::add_region(offer.bytes), Some(offer.memory))?;
        for ((offset, wake), to_server) in offer.rings.into_iter().zip([true, false]) {
            self.request(&message::add_ring(to_server, offset, offer.log2_ring), Some(wake))?;
        }
        self.send(&message::connect(NAME), None)?;
        match self.receive()? {
            ServerMessage::Connected => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Whether the server has closed the connection or announced that it will. A client ignores other messages now.
    pub fn is_over(&self) -> bool {
        let mut message = [0; SIZE];
        match recv(&self.0, &mut message, RecvFlags::DONTWAIT) {
            Ok((_, SIZE)) => matches!(ServerMessage::parse(&message), ServerMessage::Disconnect(_)),
            Ok(_) => true,
            Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
        }
    }

    fn request(&self, message: &[u8; SIZE], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send(message, file)?;
        match self.receive()? {
            ServerMessage::Ack => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn send(&self, message: &[u8; SIZE], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
        if !files.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
        }
        sendmsg(self.0.as_fd(), &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<ServerMessage> {
        let mut message = [0; SIZE];
        match recv(&self.0, &mut message, RecvFlags::empty())? {
            (_, SIZE) => Ok(ServerMessage::parse(&message)),
            (_, 0) => Err(io::ErrorKind::ConnectionAborted.into()),
            (_, bytes) => Err(io::Error::other(format!("it sent a message of {bytes} bytes, not {SIZE}"))),
        }
    }
}

impl Drop for ControlChannel {
    /// Tells the server the reason; the server notices the end of the connection in any case.
    fn drop(&mut self) {
        let _ = self.send(&message::disconnect("the port was closed"), None);
    }
}

/// The name of this client.
const NAME: &str = "fullview";

fn unexpected(answer: ServerMessage) -> io::Error {
    match answer {
        ServerMessage::Disconnect(why) => io::Error::other(format!("it refused: {why}")),
        other => io::Error::other(format!("it answered {other:?} where another message was expected")),
    }
}
