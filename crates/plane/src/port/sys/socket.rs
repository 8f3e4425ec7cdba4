//! A socket, and its options as typed values.

use std::ffi::{CString, c_int};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Plain data that the kernel reads and writes byte by byte.
///
/// # Safety
///
/// Any bytes are a valid value, and no byte of a value is uninitialised padding that must not be read.
pub unsafe trait Plain: Copy {}

// SAFETY: integers and structures of integers without padding.
unsafe impl Plain for c_int {}
// SAFETY: as above: four words.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above: two words.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above: eight bytes.
unsafe impl Plain for u64 {}
// SAFETY: as above: four words, then sixteen bits twice, two words, sixteen bits twice, four bytes.
unsafe impl Plain for libc::tpacket2_hdr {}
// SAFETY: as above: two of eight bytes, four words.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above: sixteen of eight bytes.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above: one word.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: as above: six of eight bytes.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above: eight bytes, two words.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above: sixteen bits twice, three words.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: as above: sixteen bits twice, a word, sixteen bits, two bytes, eight bytes: no padding.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above: a word, sixteen bits twice, eight bytes: no padding.
unsafe impl Plain for libc::packet_mreq {}

/// A socket, closed when it is dropped.
pub struct Socket(OwnedFd);

impl Socket {
    /// A raw socket of that domain that receives nothing before it is bound.
    pub fn raw(domain: c_int) -> io::Result<Socket> {
        // SAFETY: the call takes plain numbers and returns a descriptor or -1.
        let fd = check(unsafe { libc::socket(domain, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets an option.
    pub fn set<T: Plain>(&self, level: c_int, option: c_int, value: T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `len` bytes from a value that lives until the call ends.
        let set =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, (&raw const value).cast(), len) };
        check(set).map(drop)
    }

    /// Reads an option; fails if the kernel writes fewer bytes than `T` has.
    pub fn get<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let (mut value, mut len) = (MaybeUninit::<T>::zeroed(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `len` bytes into a value of that size.
        let got = unsafe {
            libc::getsockopt(self.0.as_raw_fd(), level, option, value.as_mut_ptr().cast(), &raw mut len)
        };
        check(got)?;
        if len as usize != size_of::<T>() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has an older form of this option",
            ));
        }
        // SAFETY: the value was zeroed and then written by the kernel, and any bytes are a valid `Plain`.
        Ok(unsafe { value.assume_init() })
    }

    /// Binds to an address of the socket's domain.
    pub fn bind<T: Plain>(&self, address: T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `len` bytes from a value that lives until the call ends.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
    }

    /// Receives only the frames that a program of classic BPF selects.
    pub fn filter(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        self.set_program(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
    }

    /// Has a program of classic BPF choose the socket of this one's group that gets a frame.
    pub fn spread(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        self.set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, program)
    }

    fn set_program(&self, level: c_int, option: c_int, program: &[libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        let len = size_of::<libc::sock_fprog>() as libc::socklen_t;
        // SAFETY: the kernel copies the program, which is borrowed until the call ends, and writes nothing to it.
        let set =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, (&raw const program).cast(), len) };
        check(set).map(drop)
    }

    /// Makes the kernel send the frames of a shared ring.
    pub fn kick_send(&self) -> io::Result<()> {
        let (fd, flags, nothing) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT, std::ptr::null());
        // SAFETY: the call sends no bytes and has no address: the kernel reads no memory.
        let sent = unsafe { libc::sendto(fd, nothing, 0, flags, std::ptr::null(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Makes the kernel receive frames into a shared ring.
    pub fn kick_receive(&self) -> io::Result<()> {
        let (fd, flags, address) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT, std::ptr::null_mut());
        // SAFETY: the call receives no bytes and no address: the kernel writes no memory.
        let received =
            unsafe { libc::recvfrom(fd, std::ptr::null_mut(), 0, flags, address, std::ptr::null_mut()) };
        if received < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives what waits, without waiting. Returns its length, which is larger than that of `bytes` if it was cut off.
    pub fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the kernel writes at most as many bytes as the slice has, which is borrowed until the call ends.
        let received =
            unsafe { libc::recv(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), flags) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Returns the pending error of the socket and clears it.
    pub fn pending_error(&self) -> io::Result<()> {
        match self.get::<c_int>(libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The index of the interface of that name, in this thread's network namespace.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: a string that ends with a zero byte and lives until the call ends.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The name of the interface with that index, in this thread's network namespace.
pub fn interface_name(index: u32) -> io::Result<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the kernel's names have at most this length with their zero byte, and the array lives until the call ends.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// The result of a system call, or its error.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
