//! The framework with scripted modules; each test passes the time.

use std::sync::{Arc, Mutex};

use super::publish::{NoRoutes, Publisher};
use super::*;
use crate::fib::{Algorithm, CompileError, Fib, Footprint, Instance, Outcome};
use crate::nexthop::NextHop;
use crate::prefix::Prefix;
use crate::rib::{Change, Rib, Summary};

mod choosing;
mod compiling;
mod following;
mod many;

/// What a module has to do, and what it did.
#[derive(Clone)]
struct Script {
    preference: u8,
    /// The number of next compiles that fail.
    failing: usize,
    outcome: Outcome,
    /// Whether the next patch asks for a batch.
    asks_for_batch: bool,
    compiled: usize,
    /// The number of changes in each patch.
    patched: Vec<usize>,
}

/// A module that follows its script.
struct Scripted {
    name: &'static str,
    state: Arc<Mutex<Script>>,
}

impl Scripted {
    /// Modules live as long as the program.
    fn new(name: &'static str, preference: u8, outcome: Outcome) -> &'static Scripted {
        let (asks_for_batch, patched) = (false, Vec::new());
        let state = Script { preference, failing: 0, outcome, asks_for_batch, compiled: 0, patched };
        Box::leak(Box::new(Scripted { name, state: Arc::new(Mutex::new(state)) }))
    }

    fn set(&self, set: impl FnOnce(&mut Script)) {
        set(&mut self.state.lock().unwrap());
    }

    fn state(&self) -> Script {
        self.state.lock().unwrap().clone()
    }
}

impl Algorithm<u32> for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }
    fn preference(&self, _summary: &Summary) -> u8 {
        self.state().preference
    }
    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        let mut state = self.state.lock().unwrap();
        if state.failing > 0 {
            state.failing -= 1;
            return Err(CompileError::Limit { algorithm: self.name, what: "routes", needed: 1, limit: 0 });
        }
        state.compiled += 1;
        Ok(Box::new(CopyInstance { fib: Arc::new(RibCopy(rib.clone())), state: Arc::clone(&self.state) }))
    }
}

/// A copy of the RIB as a FIB.
struct RibCopy(Rib<u32>);

impl Fib<u32> for RibCopy {
    fn lookup(&self, addr: u32) -> NextHop {
        self.0.longest_match(addr).map_or(NextHop::NONE, |route| route.next_hop)
    }
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
}

struct CopyInstance {
    fib: Arc<RibCopy>,
    state: Arc<Mutex<Script>>,
}

impl Instance<u32> for CopyInstance {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        Arc::<RibCopy>::clone(&self.fib)
    }
    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        let mut state = self.state.lock().unwrap();
        state.patched.push(changes.len());
        if std::mem::take(&mut state.asks_for_batch) {
            return Outcome::Batch;
        }
        // It applies only the changes passed: those that the framework forgot stay missing.
        if state.outcome == Outcome::Applied || state.outcome == Outcome::Batch && changes.len() > 1 {
            let mut patched = self.fib.0.clone();
            for change in changes {
                patched.apply(*change);
            }
            assert!(patched.iter().eq(rib.iter()), "the framework passes all changes");
            self.fib = Arc::new(RibCopy(patched));
            return Outcome::Applied;
        }
        state.outcome.clone()
    }
}

/// A table with its RIB.
struct Driven {
    rib: Arc<Rib<u32>>,
    table: Attachment<u32>,
    routes: u32,
}

const fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

impl Driven {
    fn new(modules: &[Module<u32>], settings: Settings) -> Self {
        let (rib, settings) = (Arc::default(), Arc::new(settings));
        Driven {
            rib,
            table: Attachment::publishing(0, modules.into(), settings, Publisher::new(&NoRoutes::default())),
            routes: 0,
        }
    }

    /// Adds so many new routes, each as a change of its own.
    fn add(&mut self, now: u64, routes: u32) {
        (0..routes).for_each(|_| self.add_one(now, Origin::Protocol));
    }

    fn add_one(&mut self, now: u64, origin: Origin) {
        self.routes += 1;
        let prefix = Prefix::containing(self.routes << 8, 24);
        let change = Change { prefix, next_hop: Some(NextHop(self.routes as u16 % 9 + 1)) };
        Arc::make_mut(&mut self.rib).apply(change);
        self.table.changed(ms(now), &self.rib, &[change], origin);
    }

    fn tick(&mut self, now: u64) {
        self.table.tick(ms(now), &self.rib);
    }

    /// The number of the newest route that the published FIB knows.
    fn published(&self) -> u32 {
        let fib = self.table.fib();
        (1..=self.routes).rev().find(|route| fib.lookup(route << 8).is_some()).unwrap_or(0)
    }

    fn log(&self) -> Vec<String> {
        self.table.log().iter().map(ToString::to_string).collect()
    }

    /// The log without the lines that every rebuild causes.
    fn log_without_scheduling(&self) -> Vec<String> {
        self.log().into_iter().filter(|line| !line.contains("Scheduling rebuild")).collect()
    }
}
