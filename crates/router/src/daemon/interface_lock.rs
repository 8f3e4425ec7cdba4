//! Locks interfaces, so that each has one router: two would both send on every packet that comes in.
//!
//! A router holds a Unix socket for each of its interfaces. The socket's abstract name belongs to the network namespace, and
//! the kernel removes it with the process, however that ends.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

use super::error::{DaemonError, system};
use crate::error::BadInput;
use crate::log;

/// The backlog of a lock's socket: as long as the system allows, for each router that is refused leaves a connection in it,
/// and once it is full no other can find out whose the lock is, and is refused all the same.
const BACKLOG: i32 = i32::MAX;

/// Locks on interfaces, held until this is dropped.
#[derive(Default)]
pub struct InterfaceLocks {
    /// By the names of the interfaces.
    sockets: BTreeMap<String, OwnedFd>,
}

impl InterfaceLocks {
    /// Holds locks that another router held.
    pub fn inherit(&mut self, locks: BTreeMap<String, OwnedFd>) {
        self.sockets.extend(locks);
    }

    /// A copy of an interface's lock for another process.
    pub fn share(&self, interface: &str) -> io::Result<Option<OwnedFd>> {
        self.sockets.get(interface).map(OwnedFd::try_clone).transpose()
    }
}

/// Locks all interfaces, or says which one another router has locked.
pub fn lock<'n>(interfaces: impl IntoIterator<Item = &'n String>) -> Result<InterfaceLocks, DaemonError> {
    let locks = interfaces
        .into_iter()
        .filter_map(|name| Some(lock_one(name).transpose()?.map(|lock| (name.clone(), lock))));
    Ok(InterfaceLocks { sockets: locks.collect::<Result<_, DaemonError>>()? })
}

fn lock_one(interface: &str) -> Result<Option<OwnedFd>, DaemonError> {
    let failed = || system::<io::Error>("locking an interface");
    let address = address(interface).map_err(|error| failed()(error.into()))?;
    let socket = socket().map_err(|error| failed()(error.into()))?;
    match bind(&socket, &address) {
        Ok(()) => {
            listen(&socket, BACKLOG).map_err(|error| failed()(error.into()))?;
            Ok(Some(socket))
        }
        Err(Errno::ADDRINUSE) if is_held_by_router(&address) => Err(BadInput(format!(
            "interface {interface}: another fullview forwards by it, and every packet would go out twice; end that one first"
        ))
        .into()),
        Err(error) => {
            log::warning(&format!(
                "interface {interface}: cannot be locked, so another router may use it too: {error}"
            ));
            Ok(None)
        }
    }
}

fn address(interface: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("fullview forwards by {interface}").as_bytes())
}

/// Any process may take a name. Only a process of root or of our own user can be a router. One whose backlog is full listens,
/// and is taken for a router.
fn is_held_by_router(address: &SocketAddrUnix) -> bool {
    let holder =
        socket().and_then(|socket| connect(&socket, address).and_then(|()| socket_peercred(&socket)));
    match holder {
        Ok(holder) => holder.uid.is_root() || holder.uid == geteuid(),
        Err(error) => error == Errno::AGAIN,
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_router() {
        // These names are those of the whole host, where other tests may run.
        let name = format!("fv{}", std::process::id());
        let first = lock(std::slice::from_ref(&name)).unwrap();
        for _ in 0..5 {
            let refused = lock(&["fv0".into(), name.clone()]).err().unwrap().to_string();
            assert!(refused.contains(&name) && refused.contains("another fullview"), "{refused}");
        }
        drop(first);
        lock(&[name]).unwrap();
    }

    #[test]
    fn a_lock_holds_when_no_more_routers_can_ask_for_it() {
        let name = format!("fv-full{}", std::process::id());
        let (holder, address) = (socket().unwrap(), address(&name).unwrap());
        bind(&holder, &address).unwrap();
        listen(&holder, 0).unwrap();
        let asking: Vec<OwnedFd> = (0..3).map(|_| socket().unwrap()).collect();
        let full = asking.iter().find_map(|socket| connect(socket, &address).err());
        assert_eq!(full, Some(Errno::AGAIN));
        assert!(lock(&[name]).err().unwrap().to_string().contains("another fullview"));
    }
}
