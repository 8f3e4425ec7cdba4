//! Memory shared with the kernel, or with another process.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::socket::Plain;

/// A mapping of a file descriptor, unmapped when it is dropped. The other side may write to it at any time, so no
/// function returns a plain reference to the memory: words are accessed atomically, bytes are copied.
pub struct SharedMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread of the process.
unsafe impl Send for SharedMapping {}

impl SharedMapping {
    /// Maps `len` bytes at `offset` of `fd` for reading and writing, and populates the pages.
    pub fn new(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<SharedMapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory of the program.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd.as_raw_fd(), offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(SharedMapping { start, len })
    }

    /// A pointer to `T` at `offset`; panics if it is not inside the mapping or not aligned.
    fn at<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the pointer stays inside the mapping, as was just checked.
        let place = unsafe { self.start.as_ptr().add(offset) }.cast::<T>();
        assert!(place.is_aligned(), "shared values are aligned");
        place
    }

    /// The value at `offset`, as it was when the kernel handed it over. Only for memory of the kernel, which does not write
    /// to a value between handing it over and getting it back; a process may, and then this read would be a race.
    pub(super) fn read<T: Plain>(&self, offset: usize) -> T {
        // SAFETY: `at` checks that it is inside the mapping and aligned; any bytes are a valid value. By the protocol of
        // the ring the kernel has written it before the word that was read with `acquire`, and leaves it alone now.
        unsafe { self.at::<T>(offset).read() }
    }

    /// Writes a value at `offset`. Only for memory of the kernel, as [`SharedMapping::read`].
    pub(super) fn write<T: Plain>(&self, offset: usize, value: T) {
        // SAFETY: `at` checks that it is inside the mapping and aligned. By the protocol of the ring the kernel does not
        // access it before `release` hands it over.
        unsafe { self.at::<T>(offset).write(value) }
    }

    /// The word at `offset`.
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `at` checks that it is inside the mapping and aligned; other writers may share an atomic, and the mapping
        // lives as long as the reference.
        unsafe { AtomicU32::from_ptr(self.at(offset)) }
    }

    /// The half word at `offset`.
    pub fn half_word(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as for `word`.
        unsafe { AtomicU16::from_ptr(self.at(offset)) }
    }

    /// The double word at `offset`.
    pub fn double_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as for `word`.
        unsafe { AtomicU64::from_ptr(self.at(offset)) }
    }

    /// Copies bytes into the mapping; panics if they do not fit. If the other side writes to them meanwhile, it gets a mixture
    /// of both.
    pub fn copy_from(&self, offset: usize, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the destination lies inside the mapping, as was just checked, and no reference to it exists; the source
        // is memory of the program, so they do not overlap. Another process that writes here at the same time breaks the
        // protocol: that changes the bytes, which nothing in this process depends on.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len());
        }
    }

    /// Copies bytes out of the mapping; panics if they are not inside. If the other side writes to them meanwhile, the copy is a
    /// mixture of old and new bytes. So the caller takes them for arbitrary ones, and decides by the copy alone.
    pub fn copy_to(&self, offset: usize, bytes: &mut [u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.len), "offset {offset} lies in a mapping of {}", self.len);
        // SAFETY: the source lies inside the mapping, as was just checked; the destination is exclusively ours, so they
        // do not overlap. Another process that writes here at the same time breaks the protocol: any bytes may arrive then,
        // and any bytes are a valid copy.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len());
        }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: this unmaps exactly what `new` mapped; references into it ended with the borrow of this value.
        let unmapped: c_int = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, 0, "a mapping can be unmapped");
    }
}

/// Loads a word; everything that the kernel wrote before it stored the word is visible afterwards.
pub fn acquire(word: &AtomicU32) -> u32 {
    word.load(Ordering::Acquire)
}

/// Stores a word; all earlier reads and writes of this side happen before the kernel sees it.
pub fn release(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
}
