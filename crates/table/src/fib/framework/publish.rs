//! How readers get the FIB: with one atomic load a burst, and never with a wait, whatever the writer does.
//!
//! A FIB is published whole. A reader keeps its last FIB and compares one pointer before each burst; only if another
//! FIB was published it changes reference counts. Its FIB stays valid until it asks again, so after a switch of
//! algorithm the old structure is freed once the last reader has fetched the new FIB.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use arc_swap::cache::Cache;

use crate::addr::Address;
use crate::fib::{Fib, Footprint};
use crate::nexthop::NextHop;

/// A FIB behind the pointer that readers load, which must be thin.
struct Published<A: Address>(Arc<dyn Fib<A>>);

struct Shared<A: Address> {
    fib: ArcSwap<Published<A>>,
    /// The generation of the RIB that the FIB answers like. A patch in place advances it without another FIB.
    generation: AtomicU64,
}

/// The data that writer and readers share.
struct Handle<A: Address>(Arc<Shared<A>>);

impl<A: Address> Clone for Handle<A> {
    fn clone(&self) -> Self {
        Handle(Arc::clone(&self.0))
    }
}

impl<A: Address> Handle<A> {
    fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }
}

impl<A: Address> Deref for Handle<A> {
    type Target = ArcSwap<Published<A>>;

    fn deref(&self) -> &Self::Target {
        &self.0.fib
    }
}

/// A FIB without routes, for readers of a table that no algorithm serves.
struct EmptyFib;

impl<A: Address> Fib<A> for EmptyFib {
    fn lookup(&self, _addr: A) -> NextHop {
        NextHop::NONE
    }

    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
}

/// A published FIB without routes, which many tables share.
pub(super) struct NoRoutes<A: Address>(Arc<Published<A>>);

impl<A: Address> Default for NoRoutes<A> {
    fn default() -> Self {
        NoRoutes(Arc::new(Published(Arc::new(EmptyFib))))
    }
}

/// The writer's access to the published FIB.
pub(super) struct Publisher<A: Address>(Handle<A>);

impl<A: Address> Publisher<A> {
    pub(super) fn new(nothing: &NoRoutes<A>) -> Self {
        let shared = Shared { fib: ArcSwap::new(Arc::clone(&nothing.0)), generation: AtomicU64::new(0) };
        Publisher(Handle(Arc::new(shared)))
    }

    /// Makes another publisher for the same readers.
    pub(super) fn share(&self) -> Self {
        Publisher(self.0.clone())
    }

    /// Publishes `fib`, which answers like the RIB of this generation, for the readers' next bursts. The same FIB is
    /// not published again, because readers would change reference counts without need.
    pub(super) fn publish(&self, fib: Arc<dyn Fib<A>>, generation: u64) {
        if !Arc::ptr_eq(&self.0.load().0, &fib) {
            self.0.store(Arc::new(Published(fib)));
        }
        // The generation is stored after the FIB: a reader that sees the generation sees at least its answers.
        self.0.0.generation.store(generation, Ordering::Release);
    }

    /// Readers find no route any more. What they keep of answers by the generation is no longer true.
    pub(super) fn withdraw(&self) {
        self.0.store(NoRoutes::default().0);
        self.0.0.generation.fetch_add(1, Ordering::Release);
    }

    pub(super) fn fib(&self) -> Arc<dyn Fib<A>> {
        Arc::clone(&self.0.load().0)
    }

    pub(super) fn generation(&self) -> u64 {
        self.0.generation()
    }

    pub(super) fn reader(&self) -> Reader<A> {
        self.shared_reader().reader()
    }

    pub(super) fn shared_reader(&self) -> SharedReader<A> {
        SharedReader(self.0.clone())
    }
}

/// One worker's access to the FIB.
#[derive(Clone)]
pub struct Reader<A: Address> {
    cache: Cache<Handle<A>, Arc<Published<A>>>,
    handle: Handle<A>,
}

impl<A: Address> Reader<A> {
    /// The present FIB, for one burst: ask again before the next.
    #[inline]
    pub fn fib(&mut self) -> &dyn Fib<A> {
        &*self.cache.load().0
    }

    /// The generation of the RIB up to which the FIB has synced. A caller that reads this and then looks up an address
    /// may keep the answer as long as the generation is the same (FreeBSD's `RT_GEN`).
    pub fn generation(&self) -> u64 {
        self.handle.generation()
    }
}

/// A reader for many threads that cannot each have a [`Reader`]. It keeps no FIB between bursts, so that no old FIB
/// stays in memory because a thread did not ask for the next one. Each burst takes the newest FIB instead, which costs
/// more than comparing a pointer, but never waits.
#[derive(Clone)]
pub struct SharedReader<A: Address>(Handle<A>);

impl<A: Address> SharedReader<A> {
    /// A reader of a table that never changes: one FIB, compiled elsewhere.
    pub fn fixed(fib: Arc<dyn Fib<A>>) -> Self {
        let publisher = Publisher::new(&NoRoutes::default());
        publisher.publish(fib, 0);
        publisher.shared_reader()
    }

    /// Makes a reader for one worker.
    pub fn reader(&self) -> Reader<A> {
        Reader { cache: Cache::new(self.0.clone()), handle: self.0.clone() }
    }

    /// As [`Reader::generation`].
    pub fn generation(&self) -> u64 {
        self.0.generation()
    }

    /// Whether both read the same table.
    pub fn is_same_table(&self, other: &SharedReader<A>) -> bool {
        Arc::ptr_eq(&self.0.0, &other.0.0)
    }

    /// Runs one burst with the present FIB.
    pub fn with<T>(&self, burst: impl FnOnce(&dyn Fib<A>) -> T) -> T {
        burst(&*self.0.load().0)
    }
}
