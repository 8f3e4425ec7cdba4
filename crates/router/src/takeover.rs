//! The running router whose place this process takes.
//!
//! This process builds its mirror, tables and program while the running router forwards. Then it asks for the links of the
//! other program and puts its own into them ([`Predecessor::hand_over`]), and at last has the other process end
//! ([`Predecessor::finish`]). Until then the running router goes on if this process fails or is killed: when the connection
//! ends, it puts its own programs back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::unistd::User;
use rustix::process::geteuid;

use crate::control::client::{AskError, Client};
use crate::control::request::Request;
use crate::control::takeover::{
    HandOverQuery, HandedOver, PROTOCOL, ProgramCounts, RunningInterface, RunningRouter, TakeoverQuery,
};
use crate::notify;
use crate::service::{ListenError, Listener, is_same_file};

/// How long the running router may take to learn that this process forwards: its thread may be busy with a whole table.
const TIMEOUT_TO_FINISH: Duration = Duration::from_secs(600);

/// Why a running router's place cannot be taken. The running router goes on.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    #[error("{0}")]
    Ask(#[from] AskError),
    /// It may be of a version that cannot hand over.
    #[error(
        "the running router does not hand over, and goes on: {0}; end it, and start this one without --takeover"
    )]
    Refused(AskError),
    #[error(
        "the socket of the running router belongs to the user {0}, not to root, this user, or the one it is to run as"
    )]
    Stranger(u32),
    #[error("the running router is in another network namespace; start this one there")]
    OtherNamespace,
    #[error("its network namespace cannot be read")]
    Namespace(#[source] io::Error),
    #[error(
        "the running router: {0}; a takeover cannot change that: end it, and start this one without --takeover"
    )]
    Different(String),
    #[error("this process was asked to end before it took over, and the running router goes on")]
    Stopped,
    #[error(
        "the kernel's tables change faster than this process follows, and the running router goes on; try again later, or with \
         more room for messages (--netlink-buffer)"
    )]
    Overtaken,
    #[error("the connection to the running router")]
    Peer(#[source] io::Error),
}

/// A running router that is about to be replaced.
pub struct Predecessor {
    client: Client,
    router: RunningRouter,
    /// The sockets that clients connect to, with their addresses.
    sockets: Vec<(String, OwnedFd)>,
    /// The locks of interfaces, by name.
    locks: BTreeMap<String, OwnedFd>,
    /// Set until the router has handed over: its files are not this process's.
    is_foreign: Arc<AtomicBool>,
}

/// The name of this process's network namespace.
pub fn namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/thread-self/ns/net")?.display().to_string())
}

impl Predecessor {
    /// The router that answers at this socket, if one does. `user` is the one that both routers are to run as, if not this
    /// one.
    pub fn find(socket: &Path, user: Option<&str>) -> Result<Option<Predecessor>, TakeoverError> {
        let mut client = match Client::connect(socket) {
            Ok(client) => client,
            Err(AskError::Absent { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let owner = client.server_user().map_err(TakeoverError::Peer)?;
        if !is_trusted(owner, user) {
            return Err(TakeoverError::Stranger(owner));
        }
        let query = TakeoverQuery { protocol: PROTOCOL, process: std::process::id() };
        let asked = client.ask_with_descriptors(&Request::TakeOver(query));
        let (router, descriptors): (RunningRouter, _) = asked.map_err(refused)?;
        if namespace().map_err(TakeoverError::Namespace)? != router.namespace {
            return Err(TakeoverError::OtherNamespace);
        }
        let sockets = router.sockets.iter().cloned().zip(descriptors).collect();
        let is_foreign = Arc::new(AtomicBool::new(true));
        Ok(Some(Predecessor { client, router, sockets, locks: BTreeMap::new(), is_foreign }))
    }

    /// What it said of itself.
    pub fn router(&self) -> &RunningRouter {
        &self.router
    }

    /// Its interface of this name.
    pub fn interface(&self, name: &str) -> Option<&RunningInterface> {
        self.router.interfaces.iter().find(|interface| interface.name == name)
    }

    /// Its listening Unix socket at this path, if it has one. The path may be spelled in another way than its own.
    pub fn unix_listener(&mut self, path: &Path) -> Result<Option<Listener>, ListenError> {
        let socket = self.socket(|of| Path::new(of) == path || is_same_file(Path::new(of), path));
        socket.map(|socket| Listener::inherit_unix(socket, path, Arc::clone(&self.is_foreign))).transpose()
    }

    /// Its listening TCP socket at this address, if it has one.
    pub fn tcp_listener(&mut self, address: &str) -> Option<Listener> {
        self.socket(|of| of == address).map(|socket| Listener::Tcp(socket.into()))
    }

    fn socket(&mut self, is_at: impl Fn(&str) -> bool) -> Option<OwnedFd> {
        let place = self.sockets.iter().position(|(of, _)| is_at(of))?;
        Some(self.sockets.swap_remove(place).1)
    }

    /// Takes the lock of an interface, and returns the link of its program with the index of the interface, if it has one.
    pub fn hand_over(&mut self, interface: &str) -> Result<Option<(u32, OwnedFd)>, TakeoverError> {
        let query = HandOverQuery { interface: interface.to_owned() };
        let asked = self.client.ask_with_descriptors(&Request::HandOver(query));
        let (HandedOver { lock, link, index }, descriptors) = asked.map_err(refused)?;
        let mut descriptors = descriptors.into_iter();
        if let Some(lock) = descriptors.by_ref().take(usize::from(lock)).next() {
            self.locks.insert(interface.to_owned(), lock);
        }
        Ok(descriptors.next().filter(|_| link).map(|link| (index, link)))
    }

    /// Has the router end; returns what its programs counted. If this fails, the router goes on, or it has crashed.
    pub fn finish(&mut self) -> Result<Vec<ProgramCounts>, TakeoverError> {
        self.client.wait_for(TIMEOUT_TO_FINISH).map_err(TakeoverError::Peer)?;
        let counts = self.client.ask(&Request::TakenOver).map_err(refused)?;
        self.is_foreign.store(false, Ordering::Relaxed);
        // The other process goes on until the connection ends, so that the service manager learns this before its end.
        notify::main_process();
        Ok(counts)
    }

    /// Ends the connection, by which the router ends; returns the locks. Files of sockets that this process does not use are
    /// removed.
    pub fn release(self) -> BTreeMap<String, OwnedFd> {
        let Predecessor { sockets, locks, is_foreign, .. } = self;
        for (address, socket) in sockets.into_iter().filter(|(address, _)| address.contains('/')) {
            // Its file goes with the listener.
            drop(Listener::inherit_unix(socket, Path::new(&address), Arc::clone(&is_foreign)));
        }
        locks
    }

    /// Has a router end whose data path cannot be handed over, and waits until it has ended. Of its locks, only those of
    /// these interfaces are taken. `take` gets the states and tables of its filter piece by piece, when it no longer forwards.
    pub fn end(&mut self, interfaces: &[String], take: &mut dyn FnMut(&[u8])) -> Result<(), TakeoverError> {
        for name in interfaces {
            if self.interface(name).is_some() {
                self.hand_over(name)?;
            }
        }
        self.finish()?;
        Ok(self.client.close(take)?)
    }
}

fn is_trusted(owner: u32, user: Option<&str>) -> bool {
    let of_both = user.and_then(|name| User::from_name(name).ok().flatten()).map(|user| user.uid.as_raw());
    [Some(0), Some(geteuid().as_raw()), of_both].contains(&Some(owner))
}

fn refused(error: AskError) -> TakeoverError {
    match error {
        AskError::Refused(_) => TakeoverError::Refused(error),
        other => other.into(),
    }
}
