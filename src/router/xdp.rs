//! The router whose packets are forwarded in the kernel: this process only keeps the program's tables up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use aya::programs::xdp::XdpMode;
use fullview_plane::engine::{Counters, Engine, EngineError, INET_ALGORITHM, INET6_ALGORITHM, Plan, Reason};
use fullview_plane::kernel::mirror::Mirror;
use fullview_plane::view::View;
use fullview_table::group::GroupView;

use super::links::is_gone;
use super::show::Counting;
use super::{Control, Counted, LONGEST_WAIT, Operating, Options, desk};
use crate::command::say;
use crate::operations::Operations;
use crate::operations::hub::Hub;
use crate::telemetry::events::Events;

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
    let mut path =
        Path { interfaces: &options.interfaces, mode, running: None, told: None, counted: Vec::new() };
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
    Ok(Counted::Named(path.counted))
}

/// The program, and what it knows.
struct Path<'o> {
    interfaces: &'o [String],
    mode: XdpMode,
    running: Option<Running>,
    /// The trouble said last.
    told: Option<String>,
    /// Of programs that ran before.
    counted: Vec<(&'static str, u64)>,
}

struct Running {
    engine: Engine,
    /// The kernel's numbers of the interfaces, by port; 0 is not there.
    devices: Vec<u32>,
    /// What was published last, and the generations of its tables. The groups are kept, so that what routes lead to
    /// means the same to the program as it does to them.
    view: Arc<View>,
    groups: Arc<GroupView>,
    generations: [u64; 2],
}

impl Path<'_> {
    /// Brings the program up to date. What it cannot do the kernel does: that is said, and no reason to end.
    fn follow(&mut self, mirror: &Mirror) -> anyhow::Result<()> {
        let device = |port| mirror.port_link(port).map_or(0, |link| link.index);
        let devices: Vec<u32> = (0..self.interfaces.len()).map(device).collect();
        if self.running.as_ref().is_none_or(|running| running.devices != devices) {
            self.end()?;
            self.running = Some(Running::new(devices, self.mode, mirror).context("--engine xdp")?);
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
            say(trouble);
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
        self.counted = self.named()?;
        self.running = None;
        Ok(())
    }
}

impl Counting for Path<'_> {
    /// With what programs before this one had.
    fn named(&self) -> anyhow::Result<Vec<(&'static str, u64)>> {
        let Some(running) = &self.running else { return Ok(self.counted.clone()) };
        let mut counts = named(&running.engine.counters()?);
        // Every program counts the same, in the same order.
        counts.iter_mut().zip(&self.counted).for_each(|((_, sum), (_, earlier))| *sum += earlier);
        Ok(counts)
    }
}

impl Running {
    fn new(devices: Vec<u32>, mode: XdpMode, mirror: &Mirror) -> Result<Running, EngineError> {
        let mut engine = Engine::load()?;
        for device in devices.iter().filter(|device| **device != 0) {
            engine.attach(*device, mode)?;
        }
        // No generation is that high: what follows publishes.
        let view = mirror.views().current();
        let groups = view.parts().groups.current();
        Ok(Running { engine, devices, view, groups, generations: [u64::MAX; 2] })
    }

    fn follow(&mut self, mirror: &Mirror) -> Result<(), EngineError> {
        let view = mirror.views().current();
        let Some(tables) = view.parts().tables.first() else { return Ok(()) };
        let generations = [tables.inet.reader().generation(), tables.inet6.reader().generation()];
        let groups = view.parts().groups.current();
        let is_planned = Arc::ptr_eq(&view, &self.view) && Arc::ptr_eq(&groups, &self.groups);
        if generations == self.generations && is_planned {
            return Ok(());
        }
        if self.generations[0] == u64::MAX || !is_planned {
            self.engine.publish(&Plan::of(&view, &self.devices), tables.clone())?;
        } else {
            self.engine.sync()?;
        }
        (self.view, self.groups, self.generations) = (Arc::clone(&view), groups, generations);
        Ok(())
    }
}

fn named(counters: &Counters) -> Vec<(&'static str, u64)> {
    let passed = Reason::ALL.into_iter().map(|reason| (reason.name(), counters.passed(reason)));
    [("forwarded", counters.forwarded), ("passed", counters.all_passed())].into_iter().chain(passed).collect()
}
