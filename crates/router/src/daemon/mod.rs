//! The daemon: one loop (`main_loop`) joins a control source, from which the router learns interfaces, routes and
//! neighbours, with a data path, which forwards packets.
//!
//! | control source | data path | engine |
//! | --- | --- | --- |
//! | `kernel_source` | `worker_path` | `threads` |
//! | `kernel_source` | `xdp` | `tc`, `xdp`, `xdp-generic` |
//! | `standalone` | `standalone` | `threads`, with `kernel = false` |
//!
//! `engine_choice` says which of them `auto` is.
//!
//! Other threads ask the loop through `query_queue`, and watch packets through `watch_hub`.

#[cfg(all(feature = "bpf", target_os = "linux"))]
mod attachments;
mod bypass_watch;
mod control_plane;
mod counts;
mod engine_choice;
mod error;
mod event_log;
mod filter_handle;
mod filter_start;
mod followed_ports;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod hook;
mod host_driver;
mod interface_lock;
mod kernel_filter;
mod kernel_slow_path;
mod kernel_source;
mod kernel_split;
mod link_alarm;
mod link_presence;
#[cfg(feature = "bpf")]
mod link_program;
mod main_loop;
mod multipath_hash;
mod neighbor_refresh;
mod neighbor_resolution;
mod plan_events;
mod ports;
mod predecessor_states;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod program_choice;
#[cfg(not(all(feature = "bpf", target_os = "linux")))]
#[path = "no_program_choice.rs"]
mod program_choice;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod program_counts;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod program_notes;
mod punts;
mod query_queue;
mod retry;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod running_engine;
mod running_filter;
mod standalone;
mod state;
mod successor;
mod wakeup;
mod watch_hub;
mod watchdog;
mod worker_path;
mod worker_ports;
mod worker_thread;
mod workers;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp_devices;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp_features;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bypass::TakenOver;
use crate::events::{EventKind, RecentEvents};
use crate::options::RouterOptions;
use crate::takeover::{Predecessor, TakeoverError};
use control_plane::ControlPlane;
pub use counts::{CountSnapshot, NamedCounts, total};
use engine_choice::ChosenEngine;
pub use engine_choice::{EngineChoice, EngineInUse};
pub use error::DaemonError;
pub use event_log::is_rebuild;
pub use filter_handle::{FilterHandle, FilterUnanswered, FilterUnsettled};
pub use interface_lock::{InterfaceLocks, lock};
use kernel_filter::UnfencedFilter;
use kernel_source::KernelSource;
use kernel_split::KernelSplit;
use main_loop::Daemon;
#[cfg(all(feature = "bpf", target_os = "linux"))]
use main_loop::DataPath;
pub use main_loop::{RouterCounts, RunRouter};
use predecessor_states::end_predecessor;
use program_choice::ProgramChoice;
pub use punts::{PuntCount, PuntCounts};
pub use query_queue::{QueryError, QueryHandle, QueryQueue, open as open_query_queue};
pub use running_filter::{FilterInForce, check_filter};
pub use state::{ReconfigureError, RouterState};
pub use watch_hub::{WatchHub, WatchSession, WatchedPacket};
use worker_path::WorkerPath;
use workers::KernelWorkers;

/// How often a router that takes over copies its tables while the kernel drops messages.
#[cfg(all(feature = "bpf", target_os = "linux"))]
const MOST_COPIES: usize = 5;

/// What the daemon shares with other threads.
pub struct Shared {
    pub hub: Arc<WatchHub>,
    pub events: Arc<RecentEvents>,
}

/// Checks the settings of the host that forwarding needs.
pub fn check_host(options: &RouterOptions, choice: &EngineChoice) -> Result<(), DaemonError> {
    if options.standalone.is_some() {
        return Ok(());
    }
    kernel_split::check_kernel()?;
    let check = |name| ports::check(name, options.wait).and_then(|()| kernel_split::check(name));
    options.interfaces.iter().try_for_each(|name| check(name))?;
    if options.filter.is_some() {
        options.interfaces.iter().try_for_each(|name| kernel_filter::check_interface(name))?;
        kernel_filter::check_fence(&options.interfaces)?;
    }
    if !options.bypass_filters {
        taken_over(options, choice).check()?;
    }
    Ok(())
}

/// What a router with these options takes from the kernel.
fn taken_over(options: &RouterOptions, choice: &EngineChoice) -> TakenOver {
    TakenOver {
        interfaces: options.interfaces.clone(),
        is_filtered: options.filter.is_some(),
        leaves_unqueued: choice.leaves_unqueued,
    }
}

/// Learns what to forward, and starts to forward. [`RunRouter::run`] goes on from there. If `stop` is set meanwhile, the
/// kernel is not read to its end. The router takes the place of `predecessor`, as late as it can.
pub fn start(
    options: &RouterOptions,
    choice: &EngineChoice,
    queries: QueryQueue,
    shared: &Shared,
    stop: &AtomicBool,
    predecessor: Option<&mut Predecessor>,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    if let Some(config) = &options.standalone {
        let shared = (&*shared.hub, &shared.events);
        return Ok(Box::new(standalone::start(options, config, queries, shared, predecessor)?));
    }
    shared.events.record(EventKind::Router, &choice.line);
    match &choice.engine {
        ChosenEngine::Threads => by_workers(options, choice, queries, shared, stop, predecessor),
        ChosenEngine::Program(program) => {
            let taken_over = taken_over(options, choice);
            in_kernel(options, (program, taken_over), queries, shared, stop, predecessor)
        }
    }
}

/// A process that is asked to end does not take another one's place: it may not have all routes.
fn check_takeover(predecessor: Option<&Predecessor>, stop: &AtomicBool) -> Result<(), TakeoverError> {
    predecessor.map_or(Ok(()), |_| check_stop(stop))
}

fn check_stop(stop: &AtomicBool) -> Result<(), TakeoverError> {
    if stop.load(Ordering::Relaxed) { Err(TakeoverError::Stopped) } else { Ok(()) }
}

fn by_workers(
    options: &RouterOptions,
    choice: &EngineChoice,
    queries: QueryQueue,
    Shared { hub, events }: &Shared,
    stop: &AtomicBool,
    predecessor: Option<&mut Predecessor>,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    let mut plane = ControlPlane::new(options, &[], events);
    if kernel_split::KERNEL_FORWARDS {
        plane.mirror.follow_kernel_forwarding();
    }
    let mut source = KernelSource::new(options.netlink_buffer, taken_over(options, choice))?;
    source.fill(&mut plane, &queries, stop)?;
    check_takeover(predecessor.as_deref(), stop)?;
    let filter = options.filter.as_ref().map(|filter| UnfencedFilter::new(filter, &mut plane));
    let mut filter = filter.transpose()?;
    // The ports of two routers would both forward every packet. In between, the kernel forwards.
    if let Some(predecessor) = predecessor {
        let workers = filter.as_mut().map_or(&mut [][..], |filter| &mut filter.workers);
        end_predecessor(predecessor, &options.interfaces, workers, &mut plane)?;
    }
    let (count, ports) = (options.workers, options.ports.clone());
    let (filter, of_workers) = filter.map(|filter| filter.fence(&mut plane)).transpose()?.unzip();
    // Samples are of all packets, so all packets have to meet the worker.
    let may_share = !hub.is_sampling();
    let kernel_flows = options.filter.as_ref().map(|filter| if may_share { filter.kernel_flows } else { 0 });
    let split = KernelSplit::new(count, kernel_flows, &options.punts)?;
    let workers = KernelWorkers::new(count, ports, split, source.refresh.used(), Arc::clone(hub), of_workers);
    let path = WorkerPath::start(&options.interfaces, workers, filter, &choice.why, &plane)?;
    Ok(Box::new(Daemon::new(plane, source, path, queries)))
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
fn in_kernel(
    options: &RouterOptions,
    (program, taken_over): (&ProgramChoice, TakenOver),
    queries: QueryQueue,
    Shared { events, hub }: &Shared,
    stop: &AtomicBool,
    predecessor: Option<&mut Predecessor>,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    use fullview_plane::engine::Engine;

    let mut plane = ControlPlane::new(options, &xdp::ALGORITHMS, events);
    plane.mirror.follow_kernel_forwarding();
    plane.mirror.leave_transport();
    plane.mirror.limit(Engine::MOST_VRFS + 1, Engine::MOST_RULES, Engine::MOST_INTERFACES);
    let mut source = KernelSource::new(options.netlink_buffer, taken_over)?;
    source.fill(&mut plane, &queries, stop)?;
    check_takeover(predecessor.as_deref(), stop)?;
    let shared = xdp::XdpShared { events: Arc::clone(events), hub: Arc::clone(hub) };
    let takes_over = predecessor.is_some();
    let place = (&options.interfaces[..], options.punts);
    let mut path = xdp::XdpPath::start(place, program, takes_over, shared, &plane)?;
    if let Some(predecessor) = predecessor {
        follow_until_current(&mut path, &mut plane, &mut source, (&queries, stop))?;
        path.take_over(predecessor, &plane)?;
    }
    Ok(Box::new(Daemon::new(plane, source, path, queries)))
}

/// Brings the tables up to date. The kernel may have changed much while they were copied, so much that it dropped messages:
/// then everything is read again, and copied again.
#[cfg(all(feature = "bpf", target_os = "linux"))]
fn follow_until_current(
    path: &mut xdp::XdpPath,
    plane: &mut ControlPlane,
    source: &mut KernelSource,
    (queries, stop): (&QueryQueue, &AtomicBool),
) -> Result<(), DaemonError> {
    for _ in 0..MOST_COPIES {
        let before = source.overflows();
        source.catch_up(plane)?;
        source.fill(plane, queries, stop)?;
        check_stop(stop)?;
        path.follow(plane, source)?;
        if source.overflows() == before {
            return Ok(());
        }
    }
    Err(TakeoverError::Overtaken.into())
}

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn in_kernel(
    _options: &RouterOptions,
    (program, _): (&ProgramChoice, TakenOver),
    _queries: QueryQueue,
    _shared: &Shared,
    _stop: &AtomicBool,
    _predecessor: Option<&mut Predecessor>,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    match program.0 {}
}
