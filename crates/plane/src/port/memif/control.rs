//! The control channel: how a connection comes about, and how its end is noticed.

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
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked for.
pub struct MemifAddress<'r> {
    /// The server's socket; one that begins with `@` is in the abstract namespace.
    pub socket: &'r str,
    /// Number of the server's interface.
    pub id: u32,
    /// What the server was told to expect; empty for nothing.
    pub secret: &'r str,
}

/// What a client brings along.
pub struct MemoryOffer<'o> {
    pub memory: BorrowedFd<'o>,
    pub bytes: u64,
    /// To the server, and from it: where the ring lies, and what wakes its reader.
    pub rings: [(u32, BorrowedFd<'o>); 2],
    pub log2_ring: u8,
}

/// A connection to a server. Its end is that of the packets, too.
pub struct ControlChannel(OwnedFd);

impl ControlChannel {
    /// Connects, and asks how large a ring may be.
    pub fn open(request: &MemifAddress<'_>) -> io::Result<(ControlChannel, u8)> {
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let address = match request.socket.strip_prefix('@') {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())?,
            None => SocketAddrUnix::new(request.socket)?,
        };
        connect(&fd, &address)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
        let control = ControlChannel(fd);
        match control.answer()? {
            ServerMessage::Hello { speaks: true, max_log2_ring } => Ok((control, max_log2_ring)),
            ServerMessage::Hello { .. } => Err(io::Error::other("it does not speak version 2 of memif")),
            other => Err(unexpected(other)),
        }
    }

    /// Hands over memory and rings.
    pub fn offer(&self, request: &MemifAddress<'_>, offer: &MemoryOffer<'_>) -> io::Result<()> {
        self.ask(&message::init(request.id, NAME, request.secret), None)?;
        self.ask(&message::add_region(offer.bytes), Some(offer.memory))?;
        for ((offset, wake), to_server) in offer.rings.into_iter().zip([true, false]) {
            self.ask(&message::add_ring(to_server, offset, offer.log2_ring), Some(wake))?;
        }
        self.send(&message::connect(NAME), None)?;
        match self.answer()? {
            ServerMessage::Connected => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Whether the server has gone, or said that it will. Anything else it may say now is nothing to a client.
    pub fn is_over(&self) -> bool {
        let mut message = [0; SIZE];
        match recv(&self.0, &mut message, RecvFlags::DONTWAIT) {
            Ok((_, SIZE)) => matches!(ServerMessage::parse(&message), ServerMessage::Disconnect(_)),
            Ok(_) => true,
            Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
        }
    }

    fn ask(&self, message: &[u8; SIZE], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send(message, file)?;
        match self.answer()? {
            ServerMessage::Ack => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    fn send(&self, message: &[u8; SIZE], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
        if !files.is_empty() {
            along.push(SendAncillaryMessage::ScmRights(&files));
        }
        sendmsg(self.0.as_fd(), &[IoSlice::new(message)], &mut along, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn answer(&self) -> io::Result<ServerMessage> {
        let mut message = [0; SIZE];
        match recv(&self.0, &mut message, RecvFlags::empty())? {
            (_, SIZE) => Ok(ServerMessage::parse(&message)),
            (_, 0) => Err(io::ErrorKind::ConnectionAborted.into()),
            (_, bytes) => Err(io::Error::other(format!("it sent a message of {bytes} bytes, not {SIZE}"))),
        }
    }
}

impl Drop for ControlChannel {
    /// A courtesy: the server notices the end of the socket in any case.
    fn drop(&mut self) {
        let _ = self.send(&message::disconnect("the port was closed"), None);
    }
}

/// What this end calls itself.
const NAME: &str = "fullview";

fn unexpected(answer: ServerMessage) -> io::Error {
    match answer {
        ServerMessage::Disconnect(why) => io::Error::other(format!("it refused: {why}")),
        other => io::Error::other(format!("it answered {other:?} where something else was due")),
    }
}
