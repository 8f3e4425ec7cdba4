//! Descriptors that pass from process to process by a Unix socket, and who is at the other end.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The most descriptors that go with one line.
const MOST: usize = 8;

/// The user of the process at the other end, as of when it connected, or began to listen.
pub fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    Ok(socket_peercred(stream)?.uid.as_raw())
}

/// Sends descriptors with the first of these bytes; returns how many bytes were sent.
pub fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<usize> {
    let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("more descriptors than one line takes"));
    }
    Ok(retry_on_intr(|| sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL))?)
}

/// Receives a line of at most so many bytes, which is returned without its end, and the descriptors that come with it.
pub fn receive_line(stream: &UnixStream, longest: u64) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    while line.last() != Some(&b'\n') {
        if receive(stream, &mut line, &mut descriptors)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.len() as u64 > longest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
    }
    line.pop();
    Ok((line, descriptors))
}

fn receive(stream: &UnixStream, line: &mut Vec<u8>, descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    line.extend_from_slice(bytes.get(..received.bytes).unwrap_or_default());
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn descriptors_arrive_with_their_line() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let line = [&[b'x'; 5000][..], b"\n"].concat();
        let sent = send(&one, &line, &[writer.into()]).unwrap();
        (&one).write_all(&line[sent..]).unwrap();
        let (received, mut descriptors) = receive_line(&other, 10_000).unwrap();
        assert_eq!((received, descriptors.len()), (vec![b'x'; 5000], 1));
        File::from(descriptors.remove(0)).write_all(b"by the copy").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "by the copy");
        other.write_all(&line).unwrap();
        assert!(receive_line(&one, 100).is_err());
        assert_eq!(peer_user(&one).unwrap(), rustix::process::geteuid().as_raw());
    }
}
