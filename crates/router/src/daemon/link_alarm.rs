//! Notes failed links at once, in a thread of its own. The router's thread may be busy with a million changes of routes, or
//! wait until no packet uses the tables before a change; packets to a failed link would be lost meanwhile. From the moment that
//! the link is noted, the data path leaves them to the kernel, which left the link before it reported that.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::error::{DaemonError, netlink, system};
use super::wakeup::Wakeup;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{ControlEvent, Link};
use crate::netlink::socket::{Received, RouteSocket, SocketError};
use crate::netlink::uapi;
use crate::route::LinkIndex;

/// Notes that a link has failed, or works again.
pub type FailureNote = Box<dyn Fn(&Link, bool) + Send>;

/// So many removed links stay noted, until the data path has surely left the older ones.
const MOST_REMOVED: usize = 64;

/// The thread, which ends when this is dropped.
pub struct LinkAlarm {
    state: Arc<Mutex<AlarmState>>,
    stop: Arc<AtomicBool>,
    wakeup: Wakeup,
    thread: Option<JoinHandle<()>>,
}

/// The links that have failed since the thread began, and where they are noted.
#[derive(Default)]
struct AlarmState {
    failed: BTreeMap<LinkIndex, Link>,
    /// Those that were removed since, the oldest first.
    removed: VecDeque<LinkIndex>,
    note: Option<FailureNote>,
}

impl LinkAlarm {
    pub fn start() -> Result<LinkAlarm, DaemonError> {
        let socket = RouteSocket::open(&[uapi::RTNLGRP_LINK], None);
        let socket = socket.map_err(netlink("links cannot be listened to"))?;
        let wakeup = Wakeup::new().map_err(system("making an eventfd"))?;
        let (state, stop) = (Arc::<Mutex<AlarmState>>::default(), Arc::<AtomicBool>::default());
        let (of_thread, stopped, woken) = (Arc::clone(&state), Arc::clone(&stop), wakeup.clone());
        let thread = Builder::new()
            .name("links".into())
            .spawn(move || watch(socket, &of_thread, &stopped, &woken))
            .map_err(system("starting the thread that watches links"))?;
        Ok(LinkAlarm { state, stop, wakeup, thread: Some(thread) })
    }

    /// Has failed links noted there from now on, instead of where they were noted before.
    pub fn note_by(&self, note: FailureNote) {
        let mut state = lock(&self.state);
        state.failed.values().for_each(|link| note(link, true));
        state.note = Some(note);
    }
}

impl Drop for LinkAlarm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wakeup.notify();
        // A panic of the thread was reported when it happened.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// No code that holds the lock panics.
fn lock(state: &Mutex<AlarmState>) -> MutexGuard<'_, AlarmState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(mut socket: RouteSocket, state: &Mutex<AlarmState>, stop: &AtomicBool, wakeup: &Wakeup) {
    while !stop.load(Ordering::Relaxed) {
        let mut fds = [socket.as_fd(), wakeup.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let waited = poll(&mut fds, None);
        let is_over = !matches!(waited, Ok(_) | Err(Errno::INTR));
        // Without this thread the router's thread leaves failed links, only later.
        if is_over || receive(&mut socket, state).is_err() {
            return lock(state).forget();
        }
    }
}

/// Takes in all messages that wait. If some were lost, links that work again may be among them.
fn receive(socket: &mut RouteSocket, state: &Mutex<AlarmState>) -> Result<(), SocketError> {
    loop {
        match socket.receive()? {
            Received::Nothing => return Ok(()),
            Received::Lost => lock(state).forget(),
            Received::Some(bytes) => lock(state).apply(bytes),
        }
    }
}

impl AlarmState {
    fn apply(&mut self, bytes: &[u8]) {
        for message in Messages(bytes) {
            match decode::event(&message) {
                Ok(Some(ControlEvent::Link(link))) => self.follow(link),
                Ok(Some(ControlEvent::LinkRemoved(link))) => self.remove(link),
                _ => {}
            }
        }
    }

    fn follow(&mut self, link: Link) {
        let has_failed = !(link.up && link.carrier);
        if has_failed == self.failed.contains_key(&link.index) {
            return;
        }
        self.note.iter().for_each(|note| note(&link, has_failed));
        match has_failed {
            true => _ = self.failed.insert(link.index, link),
            false => _ = self.failed.remove(&link.index),
        }
    }

    fn remove(&mut self, link: LinkIndex) {
        if self.failed.contains_key(&link) {
            self.removed.push_back(link);
        }
        if self.removed.len() > MOST_REMOVED
            && let Some(gone) = self.removed.pop_front().and_then(|oldest| self.failed.remove(&oldest))
        {
            self.note.iter().for_each(|note| note(&gone, false));
        }
    }

    fn forget(&mut self) {
        self.removed.clear();
        for link in std::mem::take(&mut self.failed).values() {
            self.note.iter().for_each(|note| note(link, false));
        }
    }
}
