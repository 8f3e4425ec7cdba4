//! The file descriptors of a test, apart from those of other tests of its process.

use nix::sched::{CloneFlags, unshare};

/// Counts the file descriptors of the calling thread, which has copies of the process's from its first call on: what other
/// tests open and close does not matter.
pub fn own_descriptors() -> usize {
    unshare(CloneFlags::CLONE_FILES).expect("a thread may have descriptors of its own");
    std::fs::read_dir("/proc/thread-self/fd").expect("procfs is mounted").count()
}
