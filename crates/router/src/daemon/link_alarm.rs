//! Notes failed links at once, in a thread of its own. The router's thread may be busy with a million changes of routes, or
//! wait until no packet uses the tables before a change; packets to a failed link would be lost meanwhile. From the moment that
//! the link is noted, the data path leaves them to the kernel, which left the link before it reported that. The program in the kernel
//! may know of it before this thread; this thread alone says that a link works again.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use super::error::{DaemonError, netlink, system};
use super::wakeup::Wakeup;
use crate::log;
use crate::netlink::decode::{self, Messages};
use crate::netlink::event::{ControlEvent, Link};
use crate::netlink::socket::{Received, RouteSocket, SocketError};
use crate::netlink::uapi;
use crate::route::LinkIndex;

/// Where links are noted.
pub trait FailureNotes: Send {
    /// Has a program in the kernel note failed links there too, if there is one, as it is reported from now on that they work again.
    fn begin(&self);

    /// Notes that a link has failed, or that it works, whether it was noted before or not.
    fn note(&self, link: &Link, has_failed: bool);

    /// Takes all links for working ones, as reports of some were lost.
    fn forget(&self);

    /// As [`Self::forget`], as there will be no reports any more.
    fn end(&self) {
        self.forget();
    }
}

/// So many removed links stay noted, until the data path has surely left the older ones.
const MOST_REMOVED: usize = 64;

/// Bytes of messages that may wait while this thread does not run.
const RECEIVE_BUFFER: usize = 8 << 20;

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
    notes: Option<Box<dyn FailureNotes>>,
    /// Whether the thread has ended because of an error.
    is_over: bool,
}

impl LinkAlarm {
    pub fn start() -> Result<LinkAlarm, DaemonError> {
        let socket = RouteSocket::open(&[uapi::RTNLGRP_LINK], Some(RECEIVE_BUFFER));
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
    pub fn note_in(&self, notes: Box<dyn FailureNotes>) {
        lock(&self.state).note_in(notes);
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
    if let Err(error) = run_before_others() {
        log::line(&format!(
            "the thread that watches links does not run in real time ({error}), so that a busy host leaves failed links later; it \
             may as root or with LimitRTPRIO=1 in a unit, if the cgroup has real time"
        ));
    }
    while !stop.load(Ordering::Relaxed) {
        if let Err(error) = wait_and_receive(&mut socket, state, wakeup) {
            // What is noted would stay noted when the links work again.
            lock(state).end();
            return log::warning(&format!(
                "the thread that watches links has ended: {error}; failed links are left when the router's thread follows the \
                 kernel"
            ));
        }
    }
}

/// Has this thread run as soon as a message comes, at the lowest priority of real time. A storm of routes that comes with the
/// failure keeps all processors busy, and packets are lost while this thread waits for one of them.
fn run_before_others() -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    set.map_err(|error| match error {
        thread_priority::Error::OS(code) => io::Error::from_raw_os_error(code),
        other => io::Error::other(other.to_string()),
    })
}

/// Waits for messages, or until the thread is to end.
fn wait_and_receive(
    socket: &mut RouteSocket,
    state: &Mutex<AlarmState>,
    wakeup: &Wakeup,
) -> Result<(), SocketError> {
    let mut fds = [socket.as_fd(), wakeup.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => receive(socket, state),
        Err(error) => Err(SocketError::System { what: "waiting for messages", source: error.into() }),
    }
}

/// Takes in all messages that wait. If some were lost, links that work again may be among them.
fn receive(socket: &mut RouteSocket, state: &Mutex<AlarmState>) -> Result<(), SocketError> {
    loop {
        match socket.receive()? {
            Received::Nothing => return Ok(()),
            Received::Lost => {
                socket.discard()?;
                lock(state).forget();
            }
            Received::Some(bytes) => lock(state).apply(bytes),
        }
    }
}

impl AlarmState {
    fn note_in(&mut self, notes: Box<dyn FailureNotes>) {
        self.failed.values().for_each(|link| notes.note(link, true));
        // What the kernel notes would stay noted if no thread took it back.
        if !self.is_over {
            notes.begin();
        }
        self.notes = Some(notes);
    }

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
        let noted = self.failed.get(&link.index);
        if has_failed && noted.is_some_and(|noted| noted.name == link.name) {
            return;
        }
        // It is noted by the name that it had, which may be another link's now.
        if let Some(noted) = self.failed.remove(&link.index) {
            self.note(&noted, false);
        }
        // Others may have noted a link that this thread never saw fail.
        self.note(&link, has_failed);
        if has_failed {
            self.failed.insert(link.index, link);
        }
    }

    fn note(&self, link: &Link, has_failed: bool) {
        self.notes.iter().for_each(|notes| notes.note(link, has_failed));
    }

    fn remove(&mut self, link: LinkIndex) {
        if self.failed.contains_key(&link) {
            self.removed.push_back(link);
        }
        if self.removed.len() > MOST_REMOVED
            && let Some(gone) = self.removed.pop_front().and_then(|oldest| self.failed.remove(&oldest))
        {
            self.note(&gone, false);
        }
    }

    fn forget(&mut self) {
        self.removed.clear();
        self.failed.clear();
        self.notes.iter().for_each(|notes| notes.forget());
    }

    fn end(&mut self) {
        self.is_over = true;
        self.failed.clear();
        self.notes.iter().for_each(|notes| notes.end());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use fullview_plane::wire::ethernet::Mac;

    use super::*;
    use crate::netlink::event::LinkKind;

    pub fn link(index: LinkIndex, up: bool) -> Link {
        let (name, kind) = (format!("eth{index}"), LinkKind::Other);
        Link {
            index,
            name,
            mac: Mac([2; 6]),
            mtu: 1500,
            mtu6: None,
            runs_inet6: true,
            up,
            carrier: up,
            kind,
            master: None,
        }
    }

    type Noted<K> = Arc<Mutex<BTreeSet<K>>>;

    /// Notes what `key` tells of a link.
    struct NotesInSet<K> {
        key: fn(&Link) -> K,
        failed: Noted<K>,
    }

    impl<K: Ord + Send> FailureNotes for NotesInSet<K> {
        fn begin(&self) {}

        fn note(&self, link: &Link, has_failed: bool) {
            let mut failed = self.failed.lock().unwrap();
            match has_failed {
                true => failed.insert((self.key)(link)),
                false => failed.remove(&(self.key)(link)),
            };
        }

        fn forget(&self) {
            self.failed.lock().unwrap().clear();
        }
    }

    /// A state, and the links that it has noted as failed.
    fn noted() -> (AlarmState, Noted<LinkIndex>) {
        noted_by(|link| link.index)
    }

    fn noted_by<K: Ord + Send + 'static>(key: fn(&Link) -> K) -> (AlarmState, Noted<K>) {
        let failed = Noted::default();
        let notes = Box::new(NotesInSet { key, failed: Arc::clone(&failed) });
        (AlarmState { notes: Some(notes), ..AlarmState::default() }, failed)
    }

    #[test]
    fn a_link_is_noted_until_it_works_again() {
        let (mut state, failed) = noted();
        let links = [link(1, true), link(2, false), link(3, false), link(2, true)];
        links.into_iter().for_each(|link| state.follow(link));
        assert_eq!(*failed.lock().unwrap(), BTreeSet::from([3]));
        state.forget();
        assert!(failed.lock().unwrap().is_empty());
    }

    /// Knows whether the kernel notes links too.
    struct NotesOfKernel(Arc<AtomicBool>);

    impl FailureNotes for NotesOfKernel {
        fn begin(&self) {
            self.0.store(true, Ordering::Relaxed);
        }

        fn note(&self, _link: &Link, _has_failed: bool) {}

        fn forget(&self) {}

        fn end(&self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_kernel_notes_links_only_while_a_thread_takes_them_back() {
        let mut state = AlarmState::default();
        let [first, second] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let notes = || [&first, &second].map(|notes| notes.load(Ordering::Relaxed));
        state.note_in(Box::new(NotesOfKernel(Arc::clone(&first))));
        assert_eq!(notes(), [true, false]);
        state.end();
        assert_eq!(notes(), [false, false]);
        state.note_in(Box::new(NotesOfKernel(Arc::clone(&second))));
        assert_eq!(notes(), [false, false]);
    }

    #[test]
    fn a_link_that_others_noted_is_noted_until_it_works() {
        let (mut state, failed) = noted();
        failed.lock().unwrap().extend([1, 2, 3]);
        [link(1, true), link(2, false)].into_iter().for_each(|link| state.follow(link));
        assert_eq!(*failed.lock().unwrap(), BTreeSet::from([2, 3]));
        state.forget();
        assert!(failed.lock().unwrap().is_empty());
    }

    /// The messages that wait are older than those that were lost, by the last of which the link works.
    #[test]
    fn what_waits_after_a_loss_is_not_noted() {
        fullview_testnet::in_namespace(|| {
            let mut socket = RouteSocket::open(&[uapi::RTNLGRP_LINK], Some(4096)).unwrap();
            let (state, failed) = noted();
            let state = Mutex::new(state);
            let ip = fullview_testnet::current::ip;
            ip("link add eth1 type veth peer name eth2");
            receive(&mut socket, &state).unwrap();
            assert_eq!(failed.lock().unwrap().len(), 2);
            (0..50).for_each(|change| _ = ip(&format!("link set eth1 mtu {}", 1400 + change)));
            ["eth1", "eth2"].iter().for_each(|name| _ = ip(&format!("link set {name} up")));
            receive(&mut socket, &state).unwrap();
            assert!(failed.lock().unwrap().is_empty());
        });
    }

    #[test]
    fn a_failed_link_leaves_its_name_to_others() {
        let (mut state, failed) = noted_by(|link| link.name.clone());
        let named = |name: &str, link: Link| Link { name: name.into(), ..link };
        state.follow(named("eth1", link(5, false)));
        state.follow(named("old", link(5, false)));
        state.follow(named("eth1", link(9, true)));
        assert_eq!(*failed.lock().unwrap(), BTreeSet::from(["old".into()]));
        state.follow(named("older", link(5, true)));
        assert!(failed.lock().unwrap().is_empty());
    }

    #[test]
    fn removed_links_are_forgotten_when_many_more_were_removed() {
        let (mut state, failed) = noted();
        let most = MOST_REMOVED as LinkIndex;
        for index in 1..=3 * most {
            state.follow(link(index, false));
            state.remove(index);
        }
        assert_eq!(*failed.lock().unwrap(), (2 * most + 1..=3 * most).collect::<BTreeSet<_>>());
        assert_eq!((state.failed.len(), state.removed.len()), (MOST_REMOVED, MOST_REMOVED));
        // A link that worked until it was removed is not noted, and takes no other one's place.
        state.follow(link(1, true));
        state.remove(1);
        assert_eq!((state.failed.len(), state.removed.len()), (MOST_REMOVED, MOST_REMOVED));
    }
}
