//! The device under test on the machine of an agent.

use std::path::Path;

use fullview_table::Family;

use super::inventory::DeviceKind;
use super::machine::MachineError;
use super::protocol::DeviceRequest;
use super::undo::Changes;
use crate::veth::{RouterProcess, RouterProgram, VethError};

/// Why a device does not start.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("{0}")]
    Machine(#[from] MachineError),
    #[error("{0}")]
    Router(#[from] VethError),
    #[error("the path of this program: {0}")]
    Program(#[source] std::io::Error),
    #[error("the device fullview has no engine")]
    NoEngine,
}

/// A device that runs. Dropping it ends its program and puts back what was set.
pub struct AgentDevice {
    router: Option<RouterProcess>,
    _changes: Changes,
}

impl AgentDevice {
    /// Sets the kernel up, and starts the program if the device is one.
    pub fn start(request: &DeviceRequest) -> Result<AgentDevice, DeviceError> {
        let mut changes = set_kernel(request)?;
        let is_program = request.kind == DeviceKind::Fullview;
        let router = is_program.then(|| router(request, &mut changes)).transpose()?;
        Ok(AgentDevice { router, _changes: changes })
    }

    /// The process of its program.
    pub fn process(&self) -> Option<u32> {
        self.router.as_ref().map(RouterProcess::process)
    }

    /// The packets that its program has sent; nothing of a device without one.
    pub fn forwarded(&self) -> Result<Option<u64>, DeviceError> {
        Ok(self.router.as_ref().map(RouterProcess::forwarded).transpose()?)
    }
}

/// Packets of IPv4 are forwarded by the setting of the interface at which they arrive, so that no other interface is touched;
/// those of IPv6 by one of the machine. A source that is only reached through another interface is no reason to drop: `all` and the interface count.
fn set_kernel(request: &DeviceRequest) -> Result<Changes, DeviceError> {
    let mut changes = Changes::default();
    let forwards = if request.kind == DeviceKind::Off { "0" } else { "1" };
    changes.interface("all", "rp_filter", "0")?;
    if request.ports.iter().any(|port| port.net.family() == Family::Inet6) {
        changes.forwarding_inet6(forwards)?;
    }
    for port in &request.ports {
        changes.up(&port.interface)?;
        changes.interface(&port.interface, "rp_filter", "0")?;
        changes.interface(&port.interface, "forwarding", forwards)?;
        changes.address(&port.interface, port.net)?;
        port.neighbor.iter().try_for_each(|neighbor| changes.neighbor(&port.interface, neighbor))?;
    }
    Ok(changes)
}

fn router(request: &DeviceRequest, changes: &mut Changes) -> Result<RouterProcess, DeviceError> {
    let engine = request.engine.as_deref().ok_or(DeviceError::NoEngine)?;
    let program = std::env::current_exe().map_err(DeviceError::Program)?;
    let names: Vec<String> = request.ports.iter().map(|port| port.interface.clone()).collect();
    changes.fence(&names)?;
    let program: &Path = &program;
    let started = RouterProgram { program, interfaces: &names.join(","), engine, options: &request.options };
    Ok(RouterProcess::start_here(&started)?)
}
