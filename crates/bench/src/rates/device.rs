//! Devices that run.

use std::path::Path;
use std::thread;
use std::time::Duration;

use fullview_plane::bpf::ProgramAttachment;

use super::bed::{BedPlan, RateBed};
use super::command_device::{CommandProcess, DeviceCommand};
use super::cores::keep;
use super::device_name::DeviceName;
use super::error::RatesError;
use super::generator::offer;
use super::kernel_forwarding;
use super::memory::{ProgramMemory, memory_of};
use super::receiver::{await_silence, received};
use super::route_changes::RouteChanges;
use super::rule_set::RuleSet;
use crate::testbed::{Namespace, attach_fib_lookup};
use crate::veth::{RouterProcess, RouterProgram};

/// So often a program gets packets until it forwards some: it learns the neighbours first.
const ATTEMPTS: usize = 100;
const FIRST_PACKETS: Duration = Duration::from_millis(50);
const FIRST_LOAD: f64 = 1000.0;

/// What forwards in a device's namespace, instead of its kernel.
enum DeviceProgram {
    /// The kernel forwards, or nothing does.
    Kernel,
    Router(RouterProcess),
    Command(CommandProcess),
    Attached(#[expect(dead_code, reason = "held, because dropping it detaches")] ProgramAttachment),
}

/// A device that runs. It ends when this value is dropped, the program before its namespaces.
pub struct Device {
    /// Of the kernel's routes.
    pub changes: Option<RouteChanges>,
    program: DeviceProgram,
    pub bed: RateBed,
}

impl Device {
    /// Starts a device, and waits until it forwards.
    pub fn start(name: DeviceName, plan: BedPlan, program: &Path) -> Result<Device, RatesError> {
        let bed = match name {
            DeviceName::Link => RateBed::direct(plan)?,
            _ => RateBed::routed(plan, name != DeviceName::Off)?,
        };
        await_silence(&bed)?;
        let rules = RuleSet::of(name, &bed.ingress, bed.family);
        let mut device = Device { changes: None, program: DeviceProgram::Kernel, bed };
        let Some(namespace) = &device.bed.router else { return Ok(device) };
        rules.map_or(Ok(()), |rules| rules.load(namespace))?;
        if name == DeviceName::FibLookup {
            device.attach()?;
        }
        if let Some(engine) = name.engine() {
            device.start_router(engine, name.options(), program)?;
        }
        if name != DeviceName::Off {
            device.wait_until_through()?;
        }
        Ok(device)
    }

    /// Starts any program, and waits until packets come through. The kernel forwards only if the program says so.
    pub fn start_command(command: &DeviceCommand, plan: BedPlan) -> Result<Device, RatesError> {
        let mut device =
            Device { changes: None, program: DeviceProgram::Kernel, bed: RateBed::routed(plan, false)? };
        await_silence(&device.bed)?;
        let interfaces = device.bed.interfaces();
        let started =
            device.on_its_core(|namespace| CommandProcess::start(namespace, command, &interfaces))?;
        device.program = DeviceProgram::Command(started);
        device.wait_until_through()?;
        Ok(device)
    }

    /// Refuses to go on with a program that has failed.
    pub fn check(&self) -> Result<(), RatesError> {
        match &self.program {
            DeviceProgram::Command(command) => command.check(),
            _ => Ok(()),
        }
    }

    /// The memory of its program, if it has one.
    pub fn memory(&self) -> Option<ProgramMemory> {
        self.process().map(memory_of)
    }

    /// The process of its program, which may lead a group.
    pub fn process(&self) -> Option<u32> {
        match &self.program {
            DeviceProgram::Router(router) => Some(router.process()),
            DeviceProgram::Command(command) => Some(command.process()),
            DeviceProgram::Kernel | DeviceProgram::Attached(_) => None,
        }
    }

    /// Packets that it has forwarded itself. This program leaves packets to the kernel, which come out too.
    pub fn forwarded(&self) -> Result<u64, RatesError> {
        match &self.program {
            DeviceProgram::Router(router) => Ok(router.forwarded()?),
            _ => received(&self.bed),
        }
    }

    /// Attaches the program that asks the kernel's tables, and waits until the kernel itself forwards nothing any more.
    fn attach(&mut self) -> Result<(), RatesError> {
        let ingress = self.bed.ingress.clone();
        let attached = self.on_its_core(|namespace| {
            let device = namespace.device(&ingress)?;
            Ok(namespace.within(|| attach_fib_lookup(device))?)
        })?;
        self.program = DeviceProgram::Attached(attached);
        let mut before = self.received_and_forwarded()?;
        self.wait(|device, sent| {
            let now = device.received_and_forwarded()?;
            let is_ready = 2 * (now.0 - before.0) > sent && now.1 == before.1;
            before = now;
            Ok(is_ready)
        })
    }

    /// What has come out, and what the kernel has forwarded.
    fn received_and_forwarded(&self) -> Result<(u64, u64), RatesError> {
        let namespace = self.bed.router.as_ref().ok_or(RatesError::ForwardsNothing)?;
        Ok((received(&self.bed)?, kernel_forwarding::forwarded(namespace, self.bed.family)?))
    }

    /// Waits until the program forwards: otherwise the kernel alone would be measured in its name.
    fn start_router(&mut self, engine: &str, options: &[&str], program: &Path) -> Result<(), RatesError> {
        let names: Vec<&str> = self.bed.interfaces().into_iter().map(|(_, name)| name).collect();
        let interfaces = names.join(",");
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let router = RouterProgram { program, interfaces: &interfaces, engine, options: &options };
        let started = self.on_its_core(|namespace| Ok(RouterProcess::start(namespace, &router)?))?;
        self.program = DeviceProgram::Router(started);
        self.wait(|device, _| Ok(device.forwarded()? > 0))
    }

    /// Starts something in the device's namespace. A program inherits the core of the thread that starts it.
    fn on_its_core<T: Send>(
        &self,
        start: impl FnOnce(&Namespace) -> Result<T, RatesError> + Send,
    ) -> Result<T, RatesError> {
        let namespace = self.bed.router.as_ref().ok_or(RatesError::ForwardsNothing)?;
        let core = self.bed.cores.device;
        thread::scope(|scope| {
            let start = || keep(None, core).and_then(|()| start(namespace));
            scope.spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Waits until more packets come through than a router sends of its own, and its kernel: over IPv6 that reports its groups.
    fn wait_until_through(&self) -> Result<(), RatesError> {
        let mut before = received(&self.bed)?;
        self.wait(|device, sent| {
            device.check()?;
            let now = received(&device.bed)?;
            let is_ready = 2 * (now - before) > sent;
            before = now;
            Ok(is_ready)
        })
    }

    /// Sends packets until a program is ready, which is asked after so many.
    fn wait(
        &self,
        mut is_ready: impl FnMut(&Device, u64) -> Result<bool, RatesError>,
    ) -> Result<(), RatesError> {
        for _ in 0..ATTEMPTS {
            let sent = offer(&self.bed, FIRST_LOAD, FIRST_PACKETS)?.sent;
            if is_ready(self, sent)? {
                return Ok(());
            }
        }
        Err(RatesError::ForwardsNothing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cores::BedCores;
    use super::*;
    use crate::traffic::frame::FrameSize;
    use fullview_table::Family;
    use fullview_testnet::may_run;

    /// The right host has received before the first packet, because the router reports its groups.
    #[test]
    fn a_router_that_forwards_nothing_is_no_device_over_ipv6() {
        let Ok(cores) = BedCores::choose() else { return };
        if !may_run(&["ip", "ethtool", "chrt"]) {
            return;
        }
        let plan = BedPlan { cores, size: FrameSize::default(), family: Family::Inet6, has_spare: false };
        let bed = RateBed::routed(plan, false).unwrap();
        await_silence(&bed).unwrap();
        assert!(received(&bed).unwrap() > 0);
        let device = Device { changes: None, program: DeviceProgram::Kernel, bed };
        assert!(matches!(device.wait_until_through(), Err(RatesError::ForwardsNothing)));
    }
}
