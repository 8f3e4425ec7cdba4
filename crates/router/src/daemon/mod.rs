//! The daemon: one loop (`main_loop`) joins a control source, from which the router learns interfaces, routes and
//! neighbours, with a data path, which forwards packets.
//!
//! | control source | data path | engine |
//! | --- | --- | --- |
//! | `kernel_source` | `worker_path` | `user` |
//! | `kernel_source` | `xdp` | `xdp`, `xdp-generic` |
//! | `standalone` | `standalone` | `user`, with `kernel = false` |
//!
//! Other threads ask the loop through `query_queue`, and watch packets through `watch_hub`.

mod bypass_watch;
mod control_plane;
mod counts;
mod error;
mod event_log;
mod followed_ports;
mod host_driver;
mod interface_lock;
mod kernel_source;
mod kernel_split;
mod link_presence;
mod main_loop;
mod neighbor_refresh;
mod neighbor_resolution;
mod plan_events;
mod ports;
mod query_queue;
mod retry;
mod standalone;
mod state;
mod wakeup;
mod watch_hub;
mod worker_path;
mod worker_thread;
mod workers;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp_devices;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod xdp_features;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::bypass::TakenOver;
#[cfg(not(all(feature = "bpf", target_os = "linux")))]
use crate::error::BadInput;
use crate::events::RecentEvents;
use crate::options::{EngineName, PortName, RouterOptions};
use control_plane::ControlPlane;
pub use counts::{CountSnapshot, NamedCounts, total};
pub use error::DaemonError;
pub use event_log::is_rebuild;
pub use interface_lock::{InterfaceLocks, lock};
use kernel_source::KernelSource;
use main_loop::Daemon;
pub use main_loop::{RouterCounts, RunRouter};
pub use query_queue::{QueryHandle, QueryQueue, open as open_query_queue};
pub use state::RouterState;
pub use watch_hub::{WatchHub, WatchSession};
use worker_path::WorkerPath;
use workers::KernelWorkers;

/// What the daemon shares with other threads.
pub struct Shared {
    pub hub: Arc<WatchHub>,
    pub events: Arc<RecentEvents>,
}

/// Checks the settings of the host that forwarding needs.
pub fn check_host(options: &RouterOptions) -> Result<(), DaemonError> {
    if options.standalone.is_some() {
        return Ok(());
    }
    let check = |name| ports::check(name, options.wait).and_then(|()| kernel_split::check(name));
    options.interfaces.iter().try_for_each(|name| check(name))?;
    if !options.bypass_filters {
        taken_over(options).check()?;
    }
    Ok(())
}

/// What a router with these options takes from the kernel.
fn taken_over(options: &RouterOptions) -> TakenOver {
    let by_packets = options.ports.kinds.iter().all(|kind| *kind == PortName::Packet);
    let leaves_unqueued = options.engine != EngineName::User || !by_packets;
    TakenOver { interfaces: options.interfaces.clone(), leaves_unqueued }
}

/// Learns what to forward, and starts to forward. [`RunRouter::run`] goes on from there. If `stop` is set meanwhile, the
/// kernel is not read to its end.
pub fn start(
    options: &RouterOptions,
    queries: QueryQueue,
    shared: &Shared,
    stop: &AtomicBool,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    if let Some(config) = &options.standalone {
        return Ok(Box::new(standalone::start(options, config, queries, &shared.hub, &shared.events)?));
    }
    match options.engine {
        EngineName::User => by_workers(options, queries, shared, stop),
        EngineName::Xdp => in_kernel(options, queries, shared, false, stop),
        EngineName::XdpGeneric => in_kernel(options, queries, shared, true, stop),
    }
}

fn by_workers(
    options: &RouterOptions,
    queries: QueryQueue,
    Shared { hub, events }: &Shared,
    stop: &AtomicBool,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    let mut plane = ControlPlane::new(options, &[], events);
    if kernel_split::KERNEL_FORWARDS {
        plane.mirror.follow_kernel_forwarding();
    }
    let mut source = KernelSource::new(options.netlink_buffer, taken_over(options))?;
    source.fill(&mut plane, &queries, stop)?;
    let (count, ports) = (options.workers, options.ports.clone());
    let workers = KernelWorkers::new(count, ports, source.refresh.used(), Arc::clone(hub))?;
    let path = WorkerPath::start(&options.interfaces, workers, &plane)?;
    Ok(Box::new(Daemon { plane, source, path, queries }))
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
fn in_kernel(
    options: &RouterOptions,
    queries: QueryQueue,
    Shared { events, .. }: &Shared,
    is_generic: bool,
    stop: &AtomicBool,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    use aya::programs::xdp::XdpMode;
    use fullview_plane::engine::Engine;

    let mut plane = ControlPlane::new(options, &xdp::ALGORITHMS, events);
    plane.mirror.follow_kernel_forwarding();
    plane.mirror.limit(Engine::MOST_VRFS + 1, Engine::MOST_INTERFACES);
    let mut source = KernelSource::new(options.netlink_buffer, taken_over(options))?;
    source.fill(&mut plane, &queries, stop)?;
    let mode = if is_generic { XdpMode::Skb } else { XdpMode::Driver };
    let path = xdp::XdpPath::start(&options.interfaces, mode, Arc::clone(events), &plane.mirror)?;
    Ok(Box::new(Daemon { plane, source, path, queries }))
}

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn in_kernel(
    _options: &RouterOptions,
    _queries: QueryQueue,
    _shared: &Shared,
    _is_generic: bool,
    _stop: &AtomicBool,
) -> Result<Box<dyn RunRouter>, DaemonError> {
    Err(BadInput(
        "--engine xdp loads a program into the kernel: build with --features bpf (needs clang)".into(),
    )
    .into())
}
