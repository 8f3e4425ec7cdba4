//! The router whose packets are forwarded in the kernel: this process only keeps the program's tables up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mirror::Mirror;
use anyhow::Context;
use aya::programs::xdp::XdpMode;
use fullview_plane::counters;
use fullview_plane::engine::{
    Engine, EngineError, INET_ALGORITHM, INET6_ALGORITHM, XdpConfig, XdpCounters, XdpReason,
};
use fullview_plane::view::{TableReaders, View};
use fullview_table::group::GroupView;

use super::links::is_gone;
use super::show::{Counting, Named, Snapshot};
use super::{Control, Counted, LONGEST_WAIT, Operating, Options, desk};
use crate::log;
use crate::operations::Operations;
use crate::operations::hub::Hub;
use crate::telemetry::events::{Events, Kind};

/// What has to serve the tables.
pub const ALGORITHMS: [&str; 2] = [INET_ALGORITHM, INET6_ALGORITHM];

/// Forwards until `stop`; returns what was counted.
pub fn run(
    options: &Options,
    operating: Operating,
    generic: bool,
    stop: &AtomicBool,
) -> anyhow::Result<Counted> {
    let (desk, asker) = desk::open().context("the router's desk")?;
    let (hub, events) = (Arc::<Hub>::default(), Arc::<Events>::default());
    let mut control = Control::new(options, desk, Arc::clone(&events))?;
    control.mirror.heed_forwarding();
    control.fill(stop)?;
    let mode = if generic { XdpMode::Skb } else { XdpMode::Driver };
    let mut path = Path {
        interfaces: &options.interfaces,
        mode,
        events: Arc::clone(&events),
        running: None,
        told: None,
        earlier: XdpCounters::default(),
    };
    path.follow(&control.mirror)?;
    let _operations = Operations::start(operating, &options.interfaces, &asker, &hub, &events)?;
    control.story.begun(control.began.elapsed(), &control.mirror.report());
    while !stop.load(Ordering::Relaxed) {
        control.turn(LONGEST_WAIT)?;
        control.serve(&path);
        control.refresh_all()?;
        path.follow(&control.mirror)?;
    }
    path.end()?;
    control.story.farewell(control.follower.statistics());
    Ok(Counted::Named(named(&path.earlier)))
}

/// The program, and what it knows.
struct Path<'o> {
    interfaces: &'o [String],
    mode: XdpMode,
    events: Arc<Events>,
    running: Option<Running>,
    /// The trouble said last.
    told: Option<String>,
    /// What programs counted that ran before.
    earlier: XdpCounters,
}

struct Running {
    engine: Engine,
    /// The kernel's numbers of the interfaces, by port; 0 is not there.
    devices: Vec<u32>,
    /// For the tables of so many VRFs.
    room: usize,
    /// What was published last, and the generations of its tables. The groups are kept, so that what routes lead to
    /// means the same to the program as it does to them.
    view: Arc<View>,
    groups: Arc<GroupView>,
    generations: Vec<[u64; 2]>,
}

impl Path<'_> {
    /// Brings the program up to date. What it cannot do the kernel does: that is said, and no reason to end.
    fn follow(&mut self, mirror: &Mirror) -> anyhow::Result<()> {
        let device = |port| mirror.port_link(port).map_or(0, |link| link.index);
        let devices: Vec<u32> = (0..self.interfaces.len()).map(device).collect();
        let vrfs = mirror.views().current().parts().tables.len().saturating_sub(1).min(Engine::MOST_VRFS);
        if self.running.as_ref().is_none_or(|running| running.devices != devices || running.room < vrfs) {
            self.end()?;
            self.running = Some(Running::new(devices, vrfs, self.mode, mirror).context("--engine xdp")?);
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        let trouble = match running.follow(mirror) {
            Ok(()) => None,
            Err(
                trouble @ (EngineError::TooLarge { .. }
                | EngineError::Algorithm { .. }
                | EngineError::Interfaces { .. }),
            ) => Some(trouble.to_string()),
            // Netlink will say so; until then the kernel forwards, and all is tried again.
            Err(_) if self.is_any_gone() => return self.end(),
            Err(error) => return Err(error).context("--engine xdp"),
        };
        if let Some(trouble) = trouble.iter().find(|trouble| self.told.as_ref() != Some(trouble)) {
            log::line(trouble);
            self.events.note(Kind::Warning, trouble.as_str());
        }
        self.told = trouble;
        Ok(())
    }

    /// Whether an interface is no longer the one that the mirror knows.
    fn is_any_gone(&self) -> bool {
        let devices = self.running.iter().flat_map(|running| &running.devices);
        let mut known = self.interfaces.iter().zip(devices).filter(|(_, device)| **device != 0);
        known.any(|(name, device)| is_gone(name, *device))
    }

    /// Takes the program away; what it counted is kept.
    fn end(&mut self) -> anyhow::Result<()> {
        self.earlier = self.counted()?;
        self.running = None;
        Ok(())
    }

    /// By all processors, and by programs before this one.
    fn counted(&self) -> anyhow::Result<XdpCounters> {
        let mut counted = self.earlier.clone();
        self.by_processor()?.iter().for_each(|processor| counted.add(processor));
        Ok(counted)
    }

    fn by_processor(&self) -> anyhow::Result<Vec<XdpCounters>> {
        let read = |running: &Running| running.engine.counters().context("what the program counted");
        Ok(self.running.as_ref().map(read).transpose()?.unwrap_or_default())
    }
}

impl Counting for Path<'_> {
    /// Of processors that saw frames.
    fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        let earlier = Snapshot::of_earlier(traffic(&self.earlier));
        let processors = self.by_processor()?;
        let processors = processors.iter().map(traffic).enumerate();
        let busy = processors.filter(|(_, counters)| counters.received().packets > 0);
        let now = busy.map(|(number, counters)| Snapshot::timeless(format!("processor {number}"), counters));
        Ok(std::iter::once(earlier).chain(now).collect())
    }

    fn named(&self) -> anyhow::Result<Named> {
        Ok(named(&self.counted()?))
    }

    fn named_by_interface(&self) -> anyhow::Result<Vec<Named>> {
        let counted = self.counted()?;
        let of = |number| {
            let reasons = XdpReason::ALL.into_iter();
            reasons.map(|reason| (reason.name(), counted.of_interface(number, reason))).collect()
        };
        Ok((0..counted.interfaces.len()).map(of).collect())
    }
}

impl Running {
    /// With room for so many VRFs, and for some that may come.
    fn new(devices: Vec<u32>, vrfs: usize, mode: XdpMode, mirror: &Mirror) -> Result<Running, EngineError> {
        let room = if vrfs > 0 { vrfs.next_power_of_two().min(Engine::MOST_VRFS) } else { 0 };
        let mut engine = Engine::with_room(room)?;
        for device in devices.iter().filter(|device| **device != 0) {
            engine.attach(*device, mode)?;
        }
        // Tables without generations: what follows publishes.
        let view = mirror.views().current();
        let groups = view.parts().groups.current();
        Ok(Running { engine, devices, room, view, groups, generations: Vec::new() })
    }

    fn follow(&mut self, mirror: &Mirror) -> Result<(), EngineError> {
        let view = mirror.views().current();
        let tables = &view.parts().tables;
        let generation =
            |table: &TableReaders| [table.inet.reader().generation(), table.inet6.reader().generation()];
        let generations: Vec<_> = tables.iter().map(generation).collect();
        let groups = view.parts().groups.current();
        let is_planned = Arc::ptr_eq(&view, &self.view) && Arc::ptr_eq(&groups, &self.groups);
        if generations == self.generations && is_planned {
            return Ok(());
        }
        if self.generations.is_empty() || !is_planned {
            self.engine.publish(&XdpConfig::from_view(&view, &self.devices), tables.clone())?;
        } else {
            self.engine.sync()?;
        }
        (self.view, self.groups, self.generations) = (Arc::clone(&view), groups, generations);
        Ok(())
    }
}

/// What the program counts as workers do.
fn traffic(counted: &XdpCounters) -> counters::Counters {
    counters::Counters { interfaces: counted.interfaces.clone(), ..counters::Counters::new(0) }
}

fn named(counted: &XdpCounters) -> Named {
    let reasons = XdpReason::ALL.into_iter().map(|reason| (reason.name(), counted.of(reason)));
    let all = [("forwarded", counted.forwarded()), ("passed", counted.all_passed())];
    all.into_iter().chain(reasons).collect()
}
