//! The data path of the engines `tc`, `xdp` and `xdp-generic`: a program in the kernel forwards, and this process keeps the
//! program's tables up to date.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use fullview_plane::counters;
use fullview_plane::engine::{
    Engine, EngineError, INET_ALGORITHM, INET6_ALGORITHM, ReportClock, XdpCounters, XdpReason,
};

use super::control_plane::ControlPlane;
use super::counts::{CountSnapshot, HandOver, NamedCounts, PathCounts};
use super::engine_choice::{EngineInUse, NONE};
use super::error::DaemonError;
use super::hook::HookChoice;
use super::kernel_source::KernelSource;
use super::link_alarm::LinkAlarm;
use super::link_program::without_verifier_log;
use super::main_loop::{DataPath, RouterCounts};
use super::program_choice::ProgramChoice;
use super::program_counts;
use super::program_notes::ProgramNotes;
use super::punts::{PuntCount, PuntCounts, by_reason};
use super::retry::Retry;
use super::running_engine::RunningEngine;
use super::successor::Successor;
use super::watch_hub::WatchHub;
use super::xdp_devices::{DeviceReader, DeviceState};
use crate::error::message;
use crate::events::{EventKind, RecentEvents};
use crate::log::{self, LogLevel};
use crate::mirror::Mirror;
use crate::options::PuntRates;
use crate::takeover::Predecessor;

/// The algorithms that the program can look up in, one for each family.
pub const ALGORITHMS: [&str; 2] = [INET_ALGORITHM, INET6_ALGORITHM];

/// What other threads share with the path.
pub struct XdpShared {
    pub events: Arc<RecentEvents>,
    pub hub: Arc<WatchHub>,
}

/// The program in the kernel, and what is known of it.
pub struct XdpPath {
    interfaces: Vec<String>,
    devices: DeviceReader,
    shared: XdpShared,
    rates: PuntRates,
    running: Option<RunningEngine>,
    /// The program before, until the running one has taken its place at all interfaces.
    replaced: Option<RunningEngine>,
    alarm: LinkAlarm,
    /// When the program was last up to date, and changes that came later waited to be taken in.
    clock: ReportClock,
    /// The warning that was logged last.
    warning: Option<String>,
    /// Attempts to bring the program up to date that failed, and why the last one did.
    retry: Retry,
    refusal: Option<String>,
    /// The sum of the counters of programs that ran before.
    earlier: XdpCounters,
    links: LinkOwner,
}

/// Which process decides about the programs on the interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkOwner {
    This,
    /// The router whose place this one takes; no program is attached yet.
    Predecessor,
    /// The router that takes this one's place; both have the links.
    Successor,
}

impl XdpPath {
    /// Loads the program, and attaches it to the interfaces that exist. If it takes another program's place, it is only made
    /// ready, and [`XdpPath::take_over`] attaches it.
    pub fn start(
        (interfaces, rates): (&[String], PuntRates),
        choice: &ProgramChoice,
        takes_over: bool,
        shared: XdpShared,
        plane: &ControlPlane,
    ) -> Result<XdpPath, DaemonError> {
        let mut devices = DeviceReader::new(interfaces, choice.rule, choice.taken.clone());
        devices.check(&plane.mirror)?;
        let mut path = XdpPath {
            interfaces: interfaces.to_vec(),
            devices,
            shared,
            rates,
            running: None,
            replaced: None,
            alarm: LinkAlarm::start()?,
            clock: ReportClock::start(),
            warning: None,
            retry: Retry::default(),
            refusal: None,
            earlier: XdpCounters::default(),
            links: if takes_over { LinkOwner::Predecessor } else { LinkOwner::This },
        };
        path.bring_up_to_date(plane.now(), &plane.mirror)?;
        if let Some(refusal) = path.running.as_mut().and_then(|running| running.attachments.take_refusal()) {
            return Err(DaemonError::Engine(refusal));
        }
        if !takes_over {
            path.complete(plane)?;
        }
        Ok(path)
    }

    /// Does what is possible once the program is attached.
    fn complete(&mut self, plane: &ControlPlane) -> Result<(), DaemonError> {
        // Some drivers take redirected frames only since the program is attached to them.
        self.bring_up_to_date(plane.now(), &plane.mirror)?;
        self.devices.forget_taken();
        self.log_devices();
        Ok(())
    }

    /// Puts the program in the place of another router's program, and has that router end.
    ///
    /// # Errors
    /// The other router goes on, and puts its own program back.
    pub fn take_over(
        &mut self,
        predecessor: &mut Predecessor,
        plane: &ControlPlane,
    ) -> Result<(), DaemonError> {
        let mut links = BTreeMap::new();
        for name in &self.interfaces {
            if predecessor.interface(name).is_some() {
                links.extend(predecessor.hand_over(name)?);
            }
        }
        self.links = LinkOwner::This;
        if let Some(running) = &mut self.running {
            running.engine.take_links(links).map_err(DaemonError::Engine)?;
        }
        for counts in predecessor.finish()? {
            self.earlier.add(&program_counts::of_this_router(&counts, &plane.mirror));
        }
        self.complete(plane)
    }

    /// Brings the program up to date. Where it cannot hold the tables, the kernel forwards in its place; that is logged,
    /// and the router runs on. While another process has the links, they stay as they are.
    fn bring_up_to_date(&mut self, now: Duration, mirror: &Mirror) -> Result<(), DaemonError> {
        let devices = self.devices.read(mirror);
        let has_links = self.links != LinkOwner::Successor;
        if has_links {
            self.load_for_tables(&devices, mirror)?;
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        let refusal = if has_links { running.prepare(&devices, &self.shared.hub) } else { None };
        let warning = match running.follow(mirror, &devices, &self.shared.hub) {
            Ok(()) => refusal,
            Err(
                warning @ (EngineError::TooLarge { .. }
                | EngineError::Algorithm { .. }
                | EngineError::Interfaces { .. }),
            ) => Some(warning.to_string()),
            Err(error) => return Err(DaemonError::Engine(error)),
        };
        if has_links {
            self.attach(&devices, now);
        }
        self.end_replaced()?;
        self.warn(warning);
        self.report(mirror);
        Ok(())
    }

    /// Loads the program, unless one runs that has room for the tables of all VRFs. One with less room forwards until the new one
    /// has its links.
    fn load_for_tables(&mut self, devices: &[DeviceState], mirror: &Mirror) -> Result<(), DaemonError> {
        let vrfs = mirror.views().current().parts().tables.len().saturating_sub(1).min(Engine::MOST_VRFS);
        if self.running.as_ref().is_some_and(|running| running.room >= vrfs) {
            return Ok(());
        }
        let awaits = self.links == LinkOwner::Predecessor;
        let running = RunningEngine::new((devices, vrfs), &self.rates, mirror, &self.shared.hub, awaits);
        let running = running.map_err(DaemonError::Engine)?;
        self.replaced = self.running.replace(running);
        self.note_failures();
        self.offer_links(devices)
    }

    /// Has the running program take the links of the one whose place it takes.
    fn offer_links(&mut self, devices: &[DeviceState]) -> Result<(), DaemonError> {
        let (Some(running), Some(replaced)) = (&mut self.running, &mut self.replaced) else { return Ok(()) };
        let (room, more) = (replaced.room, running.room);
        running.engine.offer_links(replaced.links(devices).map_err(DaemonError::Engine)?);
        let line =
            format!("the program is loaded again: besides the main table it has room for {more}, not {room}");
        self.log(EventKind::Router, &line);
        Ok(())
    }

    /// Ends the program whose place the running one has taken, and keeps what it counted.
    fn end_replaced(&mut self) -> Result<(), DaemonError> {
        let Some(mut replaced) = self.replaced.take() else { return Ok(()) };
        self.running.iter_mut().for_each(|running| running.engine.release_links());
        self.note_failures();
        replaced.attachments.detach_all(&mut replaced.engine);
        replaced.engine.settle().map_err(DaemonError::Engine)?;
        let counted = replaced.engine.counters().map_err(DaemonError::ReadCounters)?;
        counted.iter().for_each(|processor| self.earlier.add(processor));
        Ok(())
    }

    /// Attaches the program where it is missing. An interface that refuses it does not keep it from the others.
    fn attach(&mut self, devices: &[DeviceState], now: Duration) {
        let Some(running) = self.running.as_mut().filter(|running| running.serves) else { return };
        let ports = (&self.interfaces[..], devices);
        let lines = running.attachments.attach_missing(&mut running.engine, ports, now);
        lines.iter().for_each(|(kind, line)| self.log(*kind, line));
    }

    /// Logs a warning, unless it is that of the last turn.
    fn warn(&mut self, warning: Option<String>) {
        if let Some(warning) = warning.iter().find(|warning| self.warning.as_ref() != Some(warning)) {
            self.log(EventKind::Warning, warning);
        }
        self.warning = warning;
    }

    /// As [`Self::bring_up_to_date`] of a router that runs already, which does not end because a program cannot be loaded or
    /// attached any more: the kernel forwards until it can.
    fn keep_up_to_date(&mut self, now: Duration, mirror: &Mirror) -> Result<(), DaemonError> {
        if self.retry.waits(now) {
            return Ok(());
        }
        match self.bring_up_to_date(now, mirror) {
            Err(DaemonError::Engine(refusal)) => self.rest(now, &refusal),
            done => {
                self.retry.reset();
                if self.refusal.take().is_some() {
                    self.log(EventKind::Router, "the program forwards again");
                }
                done
            }
        }
    }

    /// Has the kernel forward alone until the next attempt.
    fn rest(&mut self, now: Duration, refusal: &EngineError) -> Result<(), DaemonError> {
        self.end()?;
        let why = without_verifier_log(&message(refusal));
        if self.retry.fail(now) {
            self.log(
                EventKind::Warning,
                &format!("no program runs, the kernel forwards: {why}; trying again"),
            );
        }
        self.refusal = Some(why);
        Ok(())
    }

    /// Has failed links noted in the tables of the programs that run, by the kernel itself if it can.
    fn note_failures(&self) {
        let programs = self.running.iter().chain(&self.replaced).map(RunningEngine::noted_failures);
        self.alarm.note_in(Box::new(ProgramNotes(programs.collect())));
    }

    fn log_devices(&mut self) {
        self.devices.changes().iter().for_each(|(kind, line)| self.log(*kind, line));
    }

    fn log(&self, kind: EventKind, line: &str) {
        let level = if kind == EventKind::Warning { LogLevel::Warning } else { LogLevel::Notice };
        log::at(level, line);
        self.shared.events.record(kind, line);
    }

    /// Reports until when the mirror is complete. If this process was stopped, that time is long past, and the kernel forwards.
    fn report(&mut self, mirror: &Mirror) {
        let complete_at = self.clock.end_turn(mirror.is_complete());
        self.running.iter().for_each(|running| running.engine.report(complete_at));
    }

    /// Removes the program from the kernel, and keeps what it counted.
    fn end(&mut self) -> Result<(), DaemonError> {
        self.end_replaced()?;
        self.earlier = self.counted()?;
        self.running = None;
        Ok(())
    }

    /// The sum over all processors, and over programs before this one.
    fn counted(&self) -> Result<XdpCounters, DaemonError> {
        let mut counted = self.earlier.clone();
        self.by_processor()?.iter().for_each(|processor| counted.add(processor));
        Ok(counted)
    }

    fn by_processor(&self) -> Result<Vec<XdpCounters>, DaemonError> {
        let read = |running: &RunningEngine| running.engine.counters().map_err(DaemonError::ReadCounters);
        Ok(self.running.as_ref().map(read).transpose()?.unwrap_or_default())
    }
}

impl DataPath<KernelSource> for XdpPath {
    fn follow(&mut self, plane: &mut ControlPlane, source: &mut KernelSource) -> Result<(), DaemonError> {
        source.refresh_all(plane)?;
        self.keep_up_to_date(plane.now(), &plane.mirror)?;
        source.leave_unqueued(self.devices.leave_unqueued());
        self.log_devices();
        Ok(())
    }

    /// A router that takes over has the links too, so that they stay.
    fn stop(mut self, _successor: Option<Successor<'_>>) -> Result<RouterCounts, DaemonError> {
        self.end()?;
        Ok(RouterCounts::Program(named(&self.earlier)))
    }
}

impl HandOver for XdpPath {
    fn hand_over(&mut self, port: u16) -> Result<Option<(u32, OwnedFd)>, DaemonError> {
        self.links = LinkOwner::Successor;
        let Some(running) = &self.running else { return Ok(None) };
        let index = running.index(port);
        let link = running.engine.link(index).map_err(DaemonError::Engine)?;
        Ok(link.map(|link| (index, link)))
    }

    fn take_back(&mut self) -> Result<(), DaemonError> {
        if std::mem::replace(&mut self.links, LinkOwner::This) != LinkOwner::Successor {
            return Ok(());
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        if let Err(error) = running.engine.take_back() {
            // The next turn loads and attaches programs anew.
            self.log(EventKind::Warning, &format!("the program cannot be put back: {error}"));
            self.end()?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), DaemonError> {
        let settle = |running: &mut RunningEngine| running.engine.settle().map_err(DaemonError::Engine);
        self.running.as_mut().map_or(Ok(()), settle)
    }
}

impl PathCounts for XdpPath {
    /// The first snapshot is that of earlier programs; then come the processors that received frames.
    fn snapshots(&self) -> Result<Vec<CountSnapshot>, DaemonError> {
        let earlier = CountSnapshot::of_ended(traffic(&self.earlier));
        let processors = self.by_processor()?;
        let processors = processors.iter().map(traffic).enumerate();
        let busy = processors.filter(|(_, counters)| counters.received().packets > 0);
        let now =
            busy.map(|(number, counters)| CountSnapshot::timeless(format!("processor {number}"), counters));
        Ok(std::iter::once(earlier).chain(now).collect())
    }

    fn engine(&self, port: u16) -> EngineInUse {
        if let Some(refusal) = &self.refusal {
            return EngineInUse { name: NONE, why: format!("the kernel forwards: {refusal}") };
        }
        if let Some(why) = self.running.as_ref().and_then(|running| running.refusal(port)) {
            return EngineInUse { name: NONE, why: format!("the kernel forwards: {why}") };
        }
        let choice = self.devices.choice(port);
        let in_use =
            |choice: HookChoice| EngineInUse { name: choice.hook.name(), why: choice.reason.to_string() };
        choice.map_or(EngineInUse { name: NONE, why: "there is no such interface".into() }, in_use)
    }

    fn program(&self) -> Result<NamedCounts, DaemonError> {
        Ok(named(&self.counted()?))
    }

    fn punts(&self) -> Result<PuntCounts, DaemonError> {
        let counted = self.counted()?;
        let count = |reason: XdpReason| match reason.exceeds() {
            Some(limit) => (limit.name(), PuntCount::limited(counted.of(reason))),
            None => (reason.name(), PuntCount::handed(counted.of(reason))),
        };
        let concerns_kernel = |reason: &XdpReason| !reason.drops() || reason.exceeds().is_some();
        Ok(by_reason(XdpReason::ALL.into_iter().filter(concerns_kernel).map(count)))
    }

    fn program_by_interface(&self) -> Result<Vec<NamedCounts>, DaemonError> {
        let counted = self.counted()?;
        let of = |number| {
            let reasons = XdpReason::ALL.into_iter();
            reasons.map(|reason| (reason.name(), counted.of_interface(number, reason))).collect()
        };
        Ok((0..counted.interfaces.len()).map(of).collect())
    }
}

/// Those of the program's counters that workers have too.
fn traffic(counted: &XdpCounters) -> counters::Counters {
    counters::Counters { interfaces: counted.interfaces.clone(), ..counters::Counters::new(0) }
}

fn named(counted: &XdpCounters) -> NamedCounts {
    let reasons = XdpReason::ALL.into_iter().map(|reason| (reason.name(), counted.of(reason)));
    let all = [("forwarded", counted.forwarded()), ("passed", counted.all_passed())];
    all.into_iter().chain(reasons).collect()
}
