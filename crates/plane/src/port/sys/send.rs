//! Many frames by one system call (`sendmmsg`).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null_mut;

use super::Socket;
use super::socket::check;

/// Frames one call takes: its cost of entering the kernel is spread thin by then.
const BATCH: usize = 64;

/// The vectors the kernel reads; made once, so that sending does not allocate. Between calls they point nowhere.
pub struct SendBatch {
    parts: Box<[libc::iovec; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers in it are null, or point into the boxes it owns; those to frames live only during `send`.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Empty vectors.
    pub fn new() -> SendBatch {
        let part = libc::iovec { iov_base: null_mut(), iov_len: 0 };
        // SAFETY: a message header of zeros is one without address, parts and flags.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        SendBatch { parts: Box::new([part; BATCH]), messages: Box::new([message; BATCH]) }
    }

    /// Sends frames from the front of `frames` by a socket that is bound, without waiting, and returns how many. An
    /// error concerns the first of them.
    pub fn send<'f>(&mut self, socket: &Socket, frames: impl Iterator<Item = &'f [u8]>) -> io::Result<usize> {
        let mut count = 0;
        for ((frame, part), message) in frames.zip(&mut *self.parts).zip(&mut *self.messages) {
            *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        let (fd, messages) = (socket.as_fd().as_raw_fd(), self.messages.as_mut_ptr());
        // SAFETY: `count` messages are filled in above; the kernel only reads the frames, which are borrowed until the
        // call ends, and writes into the messages, which this value owns.
        let sent: c_int = unsafe { libc::sendmmsg(fd, messages, count, libc::MSG_DONTWAIT) };
        check(sent).map(|sent| sent as usize)
    }
}
