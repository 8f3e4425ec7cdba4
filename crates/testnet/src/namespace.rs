//! New network namespaces.

use std::io;

use rustix::thread::UnshareFlags;

/// Moves the calling thread to a new namespace, whose only interface is a loopback interface that is down.
#[allow(deprecated)] // `unshare` is unsafe only where it unshares file descriptors or memory
pub fn enter_new() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNET)?)
}
