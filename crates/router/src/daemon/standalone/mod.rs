//! A router without a kernel: a configuration takes the kernel's place, and a host of the router's own answers what the
//! workers do not forward.

mod carrier;
mod macs;
mod ports;
mod source;
mod workers;

use std::sync::Arc;

use super::control_plane::ControlPlane;
use super::error::{DaemonError, system};
use super::filter_start::start_filter;
use super::host_driver::HostDriver;
use super::main_loop::Daemon;
use super::plan_events::{PortState, with_planned_addresses};
use super::predecessor_states::end_predecessor;
use super::query_queue::QueryQueue;
use super::running_filter::WorkerFilter;
use super::wakeup::Wakeup;
use super::watch_hub::WatchHub;
use crate::events::RecentEvents;
use crate::filter::FilterError;
use crate::host::channel::Wake;
use crate::options::{RouterOptions, StandaloneConfig};
use crate::takeover::Predecessor;
use carrier::CarrierMonitor;
use ports::OpenPorts;
use source::StandaloneSource;
use workers::StandaloneWorkers;

/// Opens the ports, and starts the workers. The router whose place this one takes ends first.
pub fn start(
    options: &RouterOptions,
    config: &StandaloneConfig,
    queries: QueryQueue,
    (hub, events): (&WatchHub, &Arc<RecentEvents>),
    predecessor: Option<&mut Predecessor>,
) -> Result<Daemon<StandaloneSource, StandaloneWorkers>, DaemonError> {
    let wakeup = || Wakeup::new().map_err(system("making an eventfd"));
    let (router, worker) = (wakeup()?, wakeup()?);
    let states = ports::states(options, &config.macs)?;
    let mut plane = ControlPlane::new(options, &[], events);
    plane.mirror.keep_routes();
    let host = HostDriver::new(&plane.mirror, states, &config.host);
    let wakeups = [router.clone(), worker.clone()];
    let mut source = StandaloneSource::new(host, &mut plane, &config.plan, wakeups);
    let wake: Wake = Arc::new(move || router.notify());
    let ends = source.host.connect(options.workers, &wake);
    let mut wakeups = vec![worker.clone()];
    for _ in 1..options.workers {
        wakeups.push(wakeup()?);
    }
    let mut filters = start_planned_filter(options, config, &mut plane, source.host.ports(), wakeups)?;
    if let Some(predecessor) = predecessor {
        end_predecessor(predecessor, &options.interfaces, &mut filters, &mut plane)?;
    }
    let opened = OpenPorts::open(options, &config.plan)?;
    let of_first = opened.ports.first().into_iter().flatten().flatten();
    let lines = options.interfaces.iter().zip(of_first).zip(source.host.ports());
    let carriers = CarrierMonitor::of(lines.map(|((name, port), state)| (name, port, state.up)))?;
    source.monitor(carriers);
    let path = StandaloneWorkers::start(opened, ends, &options.ports, &plane.mirror, filters, worker, hub);
    Ok(Daemon::new(plane, source, path, queries))
}

/// Makes the filter, if there is one, for the interfaces as they are at the start. Returns the parts of the workers that are woken
/// so.
fn start_planned_filter(
    options: &RouterOptions,
    config: &StandaloneConfig,
    plane: &mut ControlPlane,
    ports: &[PortState],
    wakeups: Vec<Wakeup>,
) -> Result<Vec<WorkerFilter>, FilterError> {
    let Some(options) = &options.filter else { return Ok(Vec::new()) };
    let interfaces = plane.mirror.views().current().parts().interfaces.clone();
    let interfaces = with_planned_addresses(interfaces, &config.plan.interfaces, ports);
    start_filter(options, &interfaces, plane, wakeups)
}
