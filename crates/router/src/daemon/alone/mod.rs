//! A router with no kernel behind it: what the configuration says comes in as a kernel would tell of it, and a host of
//! our own answers what the workers do not forward.
//!
//! The router's thread has tables, views and the host; workers hand it what they reject, and the first of them sends
//! what it has to say. It is rung for (see [`super::bell`]), and so is that worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::host::HostCounters;
use crate::host::config::HostSettings;
use crate::mirror::Mirror;
use anyhow::{Context, bail};
use fullview_plane::counters::Counters;
use fullview_plane::wire::ethernet::Mac;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bell::Bell;
use super::desk::{self, Desk};
use super::inside::Inside;
use super::show::Counting;
use super::story::Story;
use super::{LONGEST_WAIT, Operating, Options, flow_seed, force};
use crate::operations::Operations;
use crate::operations::hub::Hub;
use crate::telemetry::events::{Events, Kind};
pub use answers::Answers;
use plan::Plan;
use workers::Workers;

mod answers;
mod carrier;
mod macs;
pub mod plan;
mod ports;
mod told;
mod workers;

/// What a router without a kernel is told first.
pub struct Told {
    pub plan: Plan,
    /// Of its ports, as far as they are given some.
    pub macs: Vec<Option<Mac>>,
    /// How much is done for strangers.
    pub settings: HostSettings,
}

/// Forwards until `stop`; returns what was counted.
pub fn run(
    options: &Options,
    told: &Told,
    operating: Operating,
    stop: &AtomicBool,
) -> anyhow::Result<Counters> {
    let (desk, asker) = desk::open().context("the router's desk")?;
    let (hub, events) = (Arc::<Hub>::default(), Arc::<Events>::default());
    let bell = Bell::new().context("the router's bell")?;
    let Told { plan, .. } = told;
    let states = ports::states(options, &told.macs)?;
    let mut alone = Alone::new(options, told, states, desk, bell.clone(), Arc::clone(&events));
    let mut workers = Workers::start(options, plan, &mut alone.answers, &alone.mirror, &bell, &hub)?;
    let _operations = Operations::start(operating, &options.interfaces, &asker, &hub, &events)?;
    alone.began(plan);
    while !stop.load(Ordering::Relaxed) {
        alone.turn(&mut workers)?;
        if !workers.are_running() {
            workers.stop()?;
            bail!("all interfaces are gone: nothing is left to forward by");
        }
    }
    let counters = workers.stop()?;
    alone.farewell();
    Ok(counters)
}

/// What the router's thread has.
struct Alone {
    began: Instant,
    mirror: Mirror,
    answers: Answers,
    algorithm: Option<String>,
    story: Story,
    /// When the story was last told, and links looked at.
    told: Duration,
    looked: Option<Duration>,
    desk: Desk,
    bell: Bell,
}

impl Alone {
    fn new(
        options: &Options,
        told: &Told,
        ports: Vec<told::State>,
        desk: Desk,
        bell: Bell,
        events: Arc<Events>,
    ) -> Alone {
        let began = Instant::now();
        let mut mirror = Mirror::new(began.elapsed(), options.interfaces.clone(), options.settings.clone());
        mirror.set_policies(options.policies.clone());
        mirror.set_flow_seed(flow_seed());
        mirror.keep_routes();
        let answers = Answers::new(&mirror, ports, &told.settings);
        let (algorithm, story) = (options.algorithm.clone(), Story::new(events));
        let told_at = Duration::ZERO;
        let mut alone =
            Alone { began, mirror, answers, algorithm, story, told: told_at, looked: None, desk, bell };
        alone.answers.adopt(began.elapsed(), &mut alone.mirror, &told.plan);
        alone.commit();
        alone
    }

    fn began(&self, plan: &Plan) {
        let report = self.mirror.report();
        let (interfaces, inet, inet6) = (plan.interfaces.len(), report.inet, report.inet6);
        let text = format!(
            "no kernel: {interfaces} interfaces, routes to {inet} IPv4 and {inet6} IPv6 prefixes; forwarding"
        );
        self.story.line(self.began.elapsed(), Kind::Router, &text);
    }

    /// Links that went up or down. Every packet that is answered is a turn: not so often is looked.
    fn look(&mut self, workers: &mut Workers) {
        let now = self.began.elapsed();
        if self.looked.is_some_and(|last| now.saturating_sub(last) < LONGEST_WAIT) {
            return;
        }
        self.looked = Some(now);
        let changes = workers.changed_links();
        if !changes.is_empty() {
            self.answers.heed(&mut self.mirror, &changes);
        }
        for name in changes.into_iter().filter_map(|change| change.gone) {
            let text = format!("interface {name} was removed; it is used again after a restart");
            self.story.line(now, Kind::Link, &text);
        }
    }

    /// One look at everything.
    fn turn(&mut self, workers: &mut Workers) -> anyhow::Result<()> {
        self.wait()?;
        self.look(workers);
        self.answers.work(self.began.elapsed(), &mut self.mirror);
        self.commit();
        if self.answers.speak() {
            workers.ring();
        }
        let Alone { began, mirror, answers, algorithm, desk, .. } = self;
        let counting: &dyn Counting = workers;
        let statistics = None;
        let mut inside =
            Inside { now: began.elapsed(), mirror, algorithm, counting, statistics, answers: Some(answers) };
        desk.serve(&mut inside);
        self.story.tell_overruns(self.began.elapsed(), &self.mirror, workers)
    }

    fn commit(&mut self) {
        self.mirror.commit(self.began.elapsed());
        let (now, tables) = (self.began.elapsed(), self.mirror.tables_mut());
        if let Some(name) = self.algorithm.as_deref() {
            force(now, &mut tables.inet, name);
            force(now, &mut tables.inet6, name);
        }
        // The story is long: it is not looked through for every packet that is answered.
        if self.answers.follow(now, &mut self.mirror) || now.saturating_sub(self.told) >= LONGEST_WAIT {
            self.story.tell(now, &mut self.mirror);
            self.told = now;
        }
    }

    /// Until a worker has something, somebody asks, or something is due.
    fn wait(&self) -> anyhow::Result<()> {
        let now = self.began.elapsed();
        let deadlines = self.mirror.next_deadline().into_iter().chain(self.answers.next_deadline());
        let due = deadlines.min().map_or(LONGEST_WAIT, |due| due.saturating_sub(now).min(LONGEST_WAIT));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(due.subsec_nanos()) };
        let mut fds = [self.bell.fd(), self.desk.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.bell.quiet(),
            Err(error) => return Err(error).context("waiting for workers"),
        }
        Ok(())
    }

    fn farewell(&self) {
        let HostCounters { echoes, neighbor_answers, errors, forwarded, .. } = self.answers.counters();
        self.story.line(
            self.began.elapsed(),
            Kind::Router,
            &format!(
                "the host answered {echoes} echoes and {neighbor_answers} questions for neighbours, sent {errors} ICMP \
                 errors, forwarded {forwarded} packets"
            ),
        );
    }
}
