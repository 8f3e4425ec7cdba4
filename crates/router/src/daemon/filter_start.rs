//! The start of a filter, in a router with or without a kernel.

use fullview_filter::pf::files::FileSystem;
use fullview_plane::interface::Interface;

use super::control_plane::ControlPlane;
use super::running_filter::{RunningFilter, WorkerFilter};
use super::wakeup::Wakeup;
use crate::events::EventKind;
use crate::filter::{self, FilterError, FilterOptions};

/// Makes the filter for these interfaces. Returns the parts of the workers that are woken so.
pub fn start_filter(
    options: &FilterOptions,
    interfaces: &[Interface],
    plane: &mut ControlPlane,
    wakeups: Vec<Wakeup>,
) -> Result<Vec<WorkerFilter>, FilterError> {
    let compiled = filter::compile(options, &FileSystem::default(), interfaces)?;
    for unknown in &compiled.unknown {
        plane.log.line(plane.now(), EventKind::Warning, &format!("filter: {unknown}"));
    }
    let (running, workers) = RunningFilter::start(compiled, wakeups);
    plane.filter = Some(running);
    Ok(workers)
}
