//! The router on Linux: what the kernel knows comes in by netlink and becomes tables and views; workers forward by them.
//!
//! One thread (the caller's) listens to the kernel and keeps tables and views; each worker forwards between all ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fullview_plane::counters::Counters;
use fullview_plane::kernel::follow::Follower;
use fullview_plane::kernel::mirror::Mirror;
use fullview_table::fib::framework::{FamilyTables, Settings};
use fullview_table::fib::registry::{self, Registered};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::args::EngineName;
use crate::command::{BadInput, say};
use freshness::Freshness;
use links::Ports;
use story::Story;
use workers::Workers;

mod freshness;
mod links;
mod resolve;
mod share;
mod story;
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
}

impl Options {
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    fn algorithms(&self) -> Vec<String> {
        match self.engine {
            EngineName::User => self.algorithm.iter().cloned().collect(),
            EngineName::Xdp | EngineName::XdpGeneric => xdp::ALGORITHMS.map(String::from).into(),
        }
    }

    #[cfg(not(all(feature = "bpf", target_os = "linux")))]
    fn algorithms(&self) -> Vec<String> {
        self.algorithm.iter().cloned().collect()
    }
}

/// Nothing waits longer than this to be looked at.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What was counted.
pub enum Counted {
    /// By workers.
    Workers(Box<Counters>),
    /// By a program in the kernel, by name.
    #[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "such a program has no such engine"))]
    Named(Vec<(&'static str, u64)>),
}

/// Forwards until `stop`; returns what was counted.
pub fn run(options: &Options, stop: &AtomicBool) -> anyhow::Result<Counted> {
    check(options)?;
    match options.engine {
        EngineName::User => Ok(Counted::Workers(Box::new(by_workers(options, stop)?))),
        EngineName::Xdp => in_kernel(options, false, stop),
        EngineName::XdpGeneric => in_kernel(options, true, stop),
    }
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
fn in_kernel(options: &Options, generic: bool, stop: &AtomicBool) -> anyhow::Result<Counted> {
    xdp::run(options, generic, stop)
}

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn in_kernel(_options: &Options, _generic: bool, _stop: &AtomicBool) -> anyhow::Result<Counted> {
    anyhow::bail!(BadInput(
        "--engine xdp loads a program into the kernel: build with --features bpf (needs clang)".into()
    ))
}

fn by_workers(options: &Options, stop: &AtomicBool) -> anyhow::Result<Counters> {
    let mut control = Control::new(options)?;
    control.fill(stop)?;
    let mut workers = Workers::new(options.workers, control.freshness.notes())?;
    let mut ports = Ports::default();
    ports.follow(&control.mirror, &options.interfaces, &mut workers)?;
    control.story.begun(control.began.elapsed(), &control.mirror.report());
    while !stop.load(Ordering::Relaxed) {
        ports.follow(&control.mirror, &options.interfaces, &mut workers)?;
        control.turn(LONGEST_WAIT)?;
        control.resolve(&mut workers)?;
    }
    let counters = workers.stop()?;
    control.story.farewell(control.follower.statistics());
    Ok(counters)
}

fn check(options: &Options) -> anyhow::Result<()> {
    ensure!(options.workers > 0, BadInput("--workers 0: give at least 1".into()));
    for (place, name) in options.interfaces.iter().enumerate() {
        let twice = options.interfaces.iter().take(place).any(|before| before == name);
        ensure!(!twice, BadInput(format!("--interfaces: {name} is named twice")));
        share::check(name)?;
    }
    Ok(())
}

/// What listens to the kernel.
struct Control {
    began: Instant,
    follower: Follower,
    mirror: Mirror,
    /// Of each family the first that it has; none leaves the choice to the framework.
    algorithms: Vec<String>,
    resolver: resolve::Resolver,
    freshness: Freshness,
    story: Story,
}

impl Control {
    fn new(options: &Options) -> anyhow::Result<Control> {
        let began = Instant::now();
        let mut mirror = Mirror::new(began.elapsed(), options.interfaces.clone(), options.settings.clone());
        if share::KERNEL_FORWARDS {
            mirror.heed_forwarding();
        }
        let follower =
            Follower::new(Some(options.netlink_buffer)).context("the kernel cannot be listened to")?;
        let algorithms = options.algorithms();
        let resolver = resolve::Resolver::default();
        let (freshness, story) = (Freshness::default(), Story::default());
        Ok(Control { began, follower, mirror, algorithms, resolver, freshness, story })
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
        self.story.tell(self.began.elapsed(), &mut self.mirror, self.follower.statistics());
    }

    /// Tables come with the kernel's; each is to be served by the algorithm that was asked for.
    fn force(&mut self) {
        for name in &self.algorithms {
            let (now, tables) = (self.began.elapsed(), self.mirror.tables_mut());
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
        let fds = self.follower.fds();
        let mut fds = fds.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for the kernel"),
        }
    }

    /// What workers met and could not send to.
    fn resolve(&mut self, workers: &mut Workers) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        let wanted = workers.unresolved();
        self.resolver.resolve(now, wanted, &self.mirror, &self.follower).context("resolving neighbours")?;
        self.freshness.refresh(now, &self.mirror, &self.follower).context("keeping neighbours fresh")
    }
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
            say("stopping already");
        }
    })
    .context("signals cannot be handled")?;
    Ok(stop)
}
