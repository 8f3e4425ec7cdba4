//! The router on Linux: what the kernel knows comes in by netlink and becomes tables and views; workers forward by them.
//!
//! One thread (the caller's) listens to the kernel and keeps tables and views; each worker forwards between all ports.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::follow::Follower;
use crate::mirror::{InterfacePolicy, Mirror};
use anyhow::Context;
use fullview_plane::counters::Counters;
use fullview_table::fib::framework::{FamilyTables, Settings};
use fullview_table::fib::registry::{self, Registered};
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::config::EngineName;
use crate::config::reload::Reloader;
use crate::log;
use crate::operations::hub::Hub;
use crate::operations::{Listening, Operations};
use crate::telemetry::events::Events;
use desk::Desk;
use freshness::Freshness;
pub use inside::Inside;
use links::Ports;
pub use ports::PortOptions;
use show::Counting;
pub use show::{Named, Snapshot};
use story::Story;
use workers::Workers;

pub mod alone;
mod bell;
pub mod claim;
pub mod desk;
mod freshness;
mod inside;
mod links;
mod ports;
mod resolve;
mod share;
mod show;
mod story;
mod thread;
mod workers;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp;

/// What the router is to do.
pub struct Options {
    /// By which interfaces; their places are the numbers of the ports.
    pub interfaces: Vec<String>,
    pub engine: EngineName,
    /// The lookup algorithm of every table whose family has it; `None` leaves the choice to the framework.
    pub algorithm: Option<String>,
    pub settings: Settings,
    /// Bytes for changes that the kernel tells of faster than they are taken in.
    pub netlink_buffer: usize,
    pub workers: usize,
    pub ports: PortOptions,
    /// What is wanted of interfaces.
    pub policies: BTreeMap<String, InterfacePolicy>,
    /// What it is told, where no kernel tells it.
    pub alone: Option<alone::Told>,
}

/// What operators have of it.
pub struct Operating {
    pub listening: Listening,
    /// The configuration that may be read again.
    pub reloader: Option<Reloader>,
    /// The signals that ask for that.
    pub hangup: SignalFd,
}

/// Nothing waits longer than this to be looked at.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What was counted.
pub enum Counted {
    /// By workers.
    Workers(Box<Counters>),
    /// By a program in the kernel, by name.
    Named(Named),
}

/// Forwards until `stop`; returns what was counted.
pub fn run(options: &Options, operating: Operating, stop: &AtomicBool) -> anyhow::Result<Counted> {
    if let Some(told) = &options.alone {
        return Ok(Counted::Workers(Box::new(alone::run(options, told, operating, stop)?)));
    }
    match options.engine {
        EngineName::User => Ok(Counted::Workers(Box::new(by_workers(options, operating, stop)?))),
        EngineName::Xdp => in_kernel(options, operating, false, stop),
        EngineName::XdpGeneric => in_kernel(options, operating, true, stop),
    }
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
use xdp::run as in_kernel;

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn in_kernel(
    _options: &Options,
    _operating: Operating,
    _generic: bool,
    _stop: &AtomicBool,
) -> anyhow::Result<Counted> {
    anyhow::bail!(crate::error::BadInput(
        "--engine xdp loads a program into the kernel: build with --features bpf (needs clang)".into()
    ))
}

fn by_workers(options: &Options, operating: Operating, stop: &AtomicBool) -> anyhow::Result<Counters> {
    let (desk, asker) = desk::open().context("the router's desk")?;
    let (hub, events) = (Arc::<Hub>::default(), Arc::<Events>::default());
    let mut control = Control::new(options, desk, Arc::clone(&events))?;
    control.fill(stop)?;
    let mut workers =
        Workers::new(options.workers, options.ports.clone(), control.freshness.notes(), Arc::clone(&hub))?;
    let mut ports = Ports::default();
    ports.follow(&control.mirror, &options.interfaces, &mut workers)?;
    let _operations = Operations::start(operating, &options.interfaces, &asker, &hub, &events)?;
    control.story.begun(control.began.elapsed(), &control.mirror.report());
    while !stop.load(Ordering::Relaxed) {
        control.turn(LONGEST_WAIT)?;
        control.serve(&workers);
        control.story.tell_overruns(control.began.elapsed(), &control.mirror, &workers)?;
        control.resolve(&mut workers)?;
        ports.follow(&control.mirror, &options.interfaces, &mut workers)?;
    }
    let counters = workers.stop()?;
    control.story.farewell(control.follower.statistics());
    Ok(counters)
}

/// Says what is wrong with the kernel's settings.
pub fn check(options: &Options) -> anyhow::Result<()> {
    if options.alone.is_some() {
        return Ok(());
    }
    options.interfaces.iter().try_for_each(|name| ports::check(name).and_then(|()| share::check(name)))
}

/// What listens to the kernel.
struct Control {
    began: Instant,
    follower: Follower,
    mirror: Mirror,
    engine: EngineName,
    /// Asked for; `None` leaves the choice to the framework, or to what the engine can do.
    algorithm: Option<String>,
    resolver: resolve::Resolver,
    freshness: Freshness,
    story: Story,
    desk: Desk,
}

impl Control {
    fn new(options: &Options, desk: Desk, events: Arc<Events>) -> anyhow::Result<Control> {
        let began = Instant::now();
        let mut mirror = Mirror::new(began.elapsed(), options.interfaces.clone(), options.settings.clone());
        if share::KERNEL_FORWARDS {
            mirror.follow_kernel_forwarding();
        }
        mirror.set_policies(options.policies.clone());
        mirror.set_flow_seed(flow_seed());
        let follower =
            Follower::new(Some(options.netlink_buffer)).context("the kernel cannot be listened to")?;
        let (engine, algorithm) = (options.engine, options.algorithm.clone());
        let resolver = resolve::Resolver::default();
        let (freshness, story) = (Freshness::default(), Story::new(events));
        Ok(Control { began, follower, mirror, engine, algorithm, resolver, freshness, story, desk })
    }

    /// Takes in everything there is, before the first packet.
    fn fill(&mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        while !self.follower.is_synced() && !stop.load(Ordering::Relaxed) {
            self.wait(LONGEST_WAIT)?;
            self.follower.advance(self.began.elapsed(), &mut self.mirror)?;
        }
        self.commit();
        Ok(())
    }

    /// One look at everything.
    fn turn(&mut self, longest: Duration) -> anyhow::Result<()> {
        self.wait(longest)?;
        while self.follower.advance(self.began.elapsed(), &mut self.mirror)? {
            self.commit();
        }
        self.commit();
        Ok(())
    }

    fn commit(&mut self) {
        self.mirror.commit(self.began.elapsed());
        self.force();
        let now = self.began.elapsed();
        self.story.tell(now, &mut self.mirror);
        self.story.tell_followed(now, &self.mirror, self.follower.statistics());
    }

    /// Tables come with the kernel's; each is to be served by the algorithm that was asked for.
    fn force(&mut self) {
        let (now, asked) = (self.began.elapsed(), self.algorithm.as_deref());
        let tables = self.mirror.tables_mut();
        for name in engine_algorithms(self.engine).iter().copied().chain(asked) {
            force(now, &mut tables.inet, name);
            force(now, &mut tables.inet6, name);
        }
    }

    /// Until the kernel says something, or something is due.
    fn wait(&self, longest: Duration) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        let deadlines = self.mirror.next_deadline().into_iter().chain(self.follower.next_deadline());
        let due = deadlines.min().map_or(longest, |deadline| deadline.saturating_sub(now).min(longest));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(due.subsec_nanos()) };
        let [news, answers] = self.follower.fds();
        let mut fds = [news, answers, self.desk.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for the kernel"),
        }
    }

    /// Answers those who ask.
    fn serve(&mut self, counting: &dyn Counting) {
        let Control { desk, mirror, algorithm, follower, began, .. } = self;
        let statistics = Some(follower.statistics());
        let now = began.elapsed();
        let mut inside = Inside { now, mirror, algorithm, counting, statistics, answers: None };
        desk.serve(&mut inside);
    }

    /// What the program in the kernel sends to, which it does not tell, stays known.
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    fn refresh_all(&mut self) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        self.freshness.refresh_all(now, &self.mirror, &self.follower).context("keeping neighbours fresh")
    }

    /// What workers met and could not send to.
    fn resolve(&mut self, workers: &mut Workers) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        let wanted = workers.unresolved();
        self.resolver.resolve(now, wanted, &self.mirror, &self.follower).context("resolving neighbours")?;
        self.freshness.refresh(now, &self.mirror, &self.follower).context("keeping neighbours fresh")
    }
}

/// Another number in every router, and with every start, as the kernel does it.
fn flow_seed() -> u64 {
    RandomState::new().hash_one(())
}

/// What has to serve the tables, by family.
#[cfg(all(feature = "bpf", target_os = "linux"))]
fn engine_algorithms(engine: EngineName) -> &'static [&'static str] {
    match engine {
        EngineName::User => &[],
        EngineName::Xdp | EngineName::XdpGeneric => &xdp::ALGORITHMS,
    }
}

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn engine_algorithms(_engine: EngineName) -> &'static [&'static str] {
    &[]
}

/// A family that does not have the algorithm chooses by itself.
fn force<A: Registered>(now: Duration, tables: &mut FamilyTables<A>, name: &str) {
    let Some(module) = registry::find::<A>(name) else { return };
    let other =
        |number: &u32| tables.attachment(*number).is_some_and(|table| table.pinned() != Some(module.name()));
    let others: Vec<u32> = tables.numbers().filter(other).collect();
    for number in others {
        // The table is there, and has all registered modules.
        let _ = tables.force(now, number, name);
    }
}

/// Sets a flag when the program is asked to end (SIGINT, SIGTERM).
pub fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            log::line("stopping already");
        }
    })
    .context("signals cannot be handled")?;
    Ok(stop)
}
