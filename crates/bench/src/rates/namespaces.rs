//! Devices in network namespaces of this machine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;
use fullview_lab::report::code;
use fullview_profile::{CoreProfile, CoreRecorder, ProfiledCore};
use fullview_table::Family;

use super::bed::BedPlan;
use super::command_device::DeviceCommand;
use super::convergence::{Convergence, ConvergencePlan, converge};
use super::cores::BedCores;
use super::device::Device;
use super::device_name::DeviceName;
use super::device_tasks::device_tasks;
use super::error::RatesError;
use super::frame::lengths;
use super::generator::{offer, offer_to};
use super::lab::{LabDescription, RateDevice, RateLab};
use super::largest::largest_load;
use super::probe_trial::{ProbeTrial, probe};
use super::real_time::{priority_note, with_priority};
use super::receiver::{received, settled};
use super::rule_set::{RuleSet, iptables_version};
use super::table_load::{ChangeRate, RoutedDevice, RoutesPlan, TableLoad, end_changes, load_routes};
use super::trial::RateTrial;
use crate::testbed::OwnerFolder;
use crate::traffic::frame::FrameSize;

const CONDITIONS: &str = "All devices were measured in the same test bed, on one core beside a core with the generator, and hosts \
                          and device share what the machine has. Figures of other machines, of cards or of other tables are not \
                          comparable.";

/// A lab that makes a test bed for each device.
pub struct NamespaceLab {
    plan: BedPlan,
    /// This program.
    program: PathBuf,
    commands: Vec<DeviceCommand>,
}

impl NamespaceLab {
    /// `commands` are devices too, beside those of `DeviceName`.
    pub fn new(
        program: PathBuf,
        (size, family): (FrameSize, Family),
        commands: Vec<DeviceCommand>,
    ) -> Result<NamespaceLab, RatesError> {
        Ok(NamespaceLab {
            plan: BedPlan { cores: BedCores::choose()?, size, family, has_spare: false },
            program,
            commands,
        })
    }

    /// Refuses devices whose rules this host cannot set.
    pub fn check(&self, devices: &[String]) -> Result<(), RatesError> {
        let named = devices.iter().filter_map(|device| DeviceName::from_str(device, false).ok());
        let has_rules = |device: &DeviceName| RuleSet::of(*device, "", self.plan.family).is_some();
        let start = |device| Device::start(device, self.plan, &self.program).map(drop);
        named.filter(has_rules).try_for_each(start)
    }

    fn start_in(&self, device: &str, plan: BedPlan) -> Result<Device, RatesError> {
        let command = self.commands.iter().find(|command| command.name == device);
        if let Some(command) = command {
            return Device::start_command(command, plan);
        }
        let named = DeviceName::from_str(device, false);
        let name = named.map_err(|_| RatesError::NoDevice(device.to_owned()))?;
        Device::start(name, plan, &self.program)
    }

    fn descriptions(&self) -> BTreeMap<String, String> {
        let commands = self.commands.iter().map(|command| (command.name.clone(), code(&command.line)));
        let iptables = iptables_version(self.plan.family)
            .map(|version| (DeviceName::KernelIptables.word().into(), version));
        commands.chain(iptables).collect()
    }
}

impl RateLab for NamespaceLab {
    fn largest_load(&mut self, limits: [f64; 2], seconds: f64, stop: &AtomicBool) -> Result<f64, RatesError> {
        largest_load(self.plan, limits, seconds, stop)
    }

    fn check_profile(&self) -> Result<(), RatesError> {
        Ok(fullview_profile::check()?)
    }

    fn start(&mut self, device: &str) -> Result<Box<dyn RateDevice + '_>, RatesError> {
        Ok(Box::new(self.start_in(device, self.plan)?))
    }

    fn converge(&mut self, device: &str, plan: ConvergencePlan<'_>) -> Result<Vec<Convergence>, RatesError> {
        let mut device = self.start_in(device, BedPlan { has_spare: true, ..self.plan })?;
        converge(&mut device, plan)
    }

    fn describe(&self) -> LabDescription {
        let frame_bytes = lengths(self.plan.size, self.plan.family);
        let devices = self.descriptions();
        LabDescription {
            conditions: with_priority(CONDITIONS, priority_note()),
            family: self.plan.family.name(),
            frame_bytes,
            devices,
            ..LabDescription::default()
        }
    }
}

impl RateDevice for Device {
    fn trial(&mut self, load: f64, seconds: f64) -> Result<RateTrial, RatesError> {
        let before = received(&self.bed)?;
        let offered = offer(&self.bed, load, Duration::from_secs_f64(seconds))?;
        let trial = RateTrial::new(offered, settled(&self.bed, before, offered.sent)?)?;
        self.check().map(|()| trial)
    }

    fn load_routes(&mut self, plan: &RoutesPlan) -> Result<TableLoad, RatesError> {
        load_routes(self, plan)
    }

    fn end_changes(&mut self, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
        end_changes(self, plan)
    }

    /// The next measurement removes perf's files if this one is killed.
    fn profile(&mut self, load: f64, seconds: f64) -> Result<(CoreProfile, RateTrial), RatesError> {
        let folder = OwnerFolder::current()?;
        let recorder = CoreRecorder::new(ProfiledCore::One(self.bed.cores.device), folder.path());
        let tasks = device_tasks(self.process(), &self.bed);
        let (profile, trial) = recorder.record(&tasks, || self.trial(load, seconds))?;
        Ok((profile, trial?))
    }

    fn probe(&mut self, load: f64, seconds: f64, seed: u64) -> Result<ProbeTrial, RatesError> {
        probe(&self.bed, load, seconds, seed)
    }
}

impl RoutedDevice for Device {
    fn forwarded(&self) -> Result<u64, RatesError> {
        Device::forwarded(self)
    }

    fn offer_to(&self, address: IpAddr, load: f64, duration: Duration) -> Result<(), RatesError> {
        offer_to(&self.bed, &[address], load, duration).map(drop)
    }
}
