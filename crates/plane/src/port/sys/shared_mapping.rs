//! Memory shared with the kernel, or with another process.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::socket::Plain;

/// A mapping of a file descriptor, unmapped when it is dropped. The other side may write to it at any time, so nothing
/// here hands out a reference to what it shares: words are read atomically, bytes are copied.
pub struct SharedMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread of the process.
unsafe impl Send for SharedMapping {}

impl SharedMapping {
    /// Maps `len` bytes at `offset` of `fd`, to read and write, in memory at once.
    pub fn new(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<SharedMapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that Rust knows of.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SharedMapping { start, len })
    }

    /// The place of `T` at `offset`; panics if it is not inside the mapping or not aligned.
    fn at<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the place lies inside the mapping, as was just checked.
        let place = unsafe { self.start.as_ptr().add(offset) }.cast::<T>();
        assert!(place.is_aligned(), "what the kernel shares is aligned");
        place
    }

    /// The value at `offset`, as it was when the kernel handed it over.
    pub fn read<T: Plain>(&self, offset: usize) -> T {
        // SAFETY: inside the mapping and aligned, says `at`; any bytes are a valid value.
        unsafe { self.at::<T>(offset).read() }
    }

    /// Puts a value at `offset`, for the kernel to take over.
    pub fn write<T: Plain>(&self, offset: usize, value: T) {
        // SAFETY: inside the mapping and aligned, says `at`; nobody holds a reference to it but to words, atomically.
        unsafe { self.at::<T>(offset).write(value) }
    }

    /// The word at `offset`.
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned, says `at`; an atomic may be shared with whoever else writes it, and
        // the mapping lives as long as the reference.
        unsafe { AtomicU32::from_ptr(self.at(offset)) }
    }

    /// The half word at `offset`.
    pub fn half_word(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as for `word`.
        unsafe { AtomicU16::from_ptr(self.at(offset)) }
    }

    /// Copies bytes in; panics if they do not fit into the mapping.
    pub fn copy_from(&self, offset: usize, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the destination lies inside the mapping, as was just checked, and no reference to it exists; the source
        // is memory of Rust's, so they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len());
        }
    }

    /// Copies bytes out; panics if they are not inside the mapping.
    pub fn copy_to(&self, offset: usize, bytes: &mut [u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the source lies inside the mapping, as was just checked; the destination is exclusively ours, so they
        // do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len());
        }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; references into it ended with the borrow of this value.
        let unmapped: c_int = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, 0, "a mapping can be unmapped");
    }
}

/// What the kernel wrote before it stored this word is seen after this load.
pub fn acquire(word: &AtomicU32) -> u32 {
    word.load(Ordering::Acquire)
}

/// What was read or written before this store is done before the kernel sees the word.
pub fn release(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
}
