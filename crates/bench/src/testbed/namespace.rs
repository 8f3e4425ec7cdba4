//! Network namespaces of our own, gone when their value is.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, gettid, move_into_link_name_space};

use super::command::run;
use super::error::TestbedError;
use super::marker::mark;
use super::owner::OwnerFolder;
use super::records::RecordedNamespace;

/// A network namespace with a name that no other process uses. If this process is killed, the next one that makes a
/// namespace removes it.
pub struct Namespace {
    name: String,
    owner: Arc<OwnerFolder>,
}

impl Namespace {
    /// Makes a namespace; `role` distinguishes those of one process.
    pub fn new(role: &str) -> Result<Namespace, TestbedError> {
        let (name, owner) = (format!("fv{}{role}", std::process::id()), OwnerFolder::current()?);
        // In a thread, which is in the new namespace until it ends.
        let made = thread::scope(|scope| scope.spawn(|| make(&name, &owner)).join());
        made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Namespace { name, owner })
    }

    /// Its name, for `ip -n`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip -batch` in it.
    pub fn batch(&self, lines: &str) -> Result<(), TestbedError> {
        run("ip", &["-n", &self.name, "-batch", "-"], lines)
    }

    /// Does some work in it, in a thread that ends with the work.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<T, TestbedError> {
        let entered = || {
            let file = File::open(format!("/run/netns/{}", self.name))?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(())
        };
        thread::scope(|scope| {
            let done = scope.spawn(|| {
                entered()
                    .map_err(|error: io::Error| TestbedError::Enter { name: self.name.clone(), error })?;
                work()
            });
            done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The index of a device in it.
    pub fn device(&self, name: &str) -> Result<u32, TestbedError> {
        self.within(|| {
            let socket =
                rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
            let index = socket.and_then(|socket| rustix::net::netdevice::name_to_index(&socket, name));
            index.map_err(|error| TestbedError::Device { name: name.into(), error: error.into() })
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel removes its devices with it. A failure cannot be reported from here.
        let deleted = run("ip", &["netns", "delete", &self.name], "");
        let _ = deleted.map(|()| RecordedNamespace::remove(self.owner.path(), &self.name));
    }
}

/// Makes a namespace for the calling thread, records it, and then names it: a name without a record would stay for ever.
fn make(name: &str, owner: &OwnerFolder) -> Result<(), TestbedError> {
    let entered = enter_new().and_then(|()| Ok(fs::metadata("/proc/thread-self/ns/net")?.ino()));
    let inode = entered.map_err(|error| TestbedError::Enter { name: name.into(), error })?;
    mark()?;
    RecordedNamespace::write(owner.path(), name, inode)?;
    run("ip", &["netns", "attach", name, &gettid().to_string()], "")
}

#[allow(deprecated)] // `unshare` is unsafe only where it unshares file descriptors or memory
fn enter_new() -> io::Result<()> {
    Ok(rustix::thread::unshare(UnshareFlags::NEWNET)?)
}
