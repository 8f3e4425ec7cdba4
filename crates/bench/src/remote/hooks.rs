//! Commands on nodes before, during and after the search of a device.

use std::fs;
use std::path::{Path, PathBuf};

use super::bed::RemoteBed;
use super::error::RemoteError;
use super::inventory::{HookSettings, HookTime};
use super::timed_command::{CommandEnd, TimedCommand};

/// The folder of what they print, in that of the results.
pub const HOOKS: &str = "hooks";
/// A hook that runs during a search ends with it.
const WITHOUT_LIMIT: u64 = 7 * 24 * 3600;
const USUAL: u64 = 60;

/// The hooks of a device that runs.
pub struct DeviceHooks<'l> {
    bed: &'l RemoteBed,
    folder: PathBuf,
    device: String,
    repetition: u32,
    running: Vec<RunningHook<'l>>,
}

/// A hook of this number in the inventory, from 1.
struct RunningHook<'l> {
    settings: &'l HookSettings,
    number: usize,
    command: TimedCommand,
}

impl<'l> DeviceHooks<'l> {
    /// `folder` is that of the results.
    pub fn new(bed: &'l RemoteBed, folder: &Path, device: &str) -> DeviceHooks<'l> {
        let (folder, device) = (folder.join(HOOKS), device.to_owned());
        DeviceHooks { bed, folder, device, repetition: 0, running: Vec::new() }
    }

    /// Runs what comes before the search of a repetition, and begins what runs during it.
    pub fn begin(&mut self, repetition: u32) -> Result<(), RemoteError> {
        self.repetition = repetition;
        self.run_all(HookTime::Before)?;
        self.running = self.start_all(HookTime::During)?;
        Ok(())
    }

    /// Ends what runs, and runs what comes after the search.
    pub fn end(&mut self) -> Result<(), RemoteError> {
        let running = std::mem::take(&mut self.running);
        for RunningHook { settings, number, command } in running {
            self.keep(settings, number, &command.end()?)?;
        }
        self.run_all(HookTime::After)
    }

    fn run_all(&self, time: HookTime) -> Result<(), RemoteError> {
        let wanted = self.wanted(time);
        wanted.into_iter().try_for_each(|(number, settings)| {
            let command = self.start(settings)?;
            self.keep(settings, number, &command.wait()?)
        })
    }

    fn start_all(&self, time: HookTime) -> Result<Vec<RunningHook<'l>>, RemoteError> {
        let start = |(number, settings)| Ok(RunningHook { settings, number, command: self.start(settings)? });
        self.wanted(time).into_iter().map(start).collect()
    }

    fn wanted(&self, time: HookTime) -> Vec<(usize, &'l HookSettings)> {
        let is_wanted = |hook: &&HookSettings| {
            hook.when == time && (hook.devices.is_empty() || hook.devices.contains(&self.device))
        };
        (1..).zip(&self.bed.wiring.inventory.hooks).filter(|(_, hook)| is_wanted(hook)).collect()
    }

    fn start(&self, settings: &HookSettings) -> Result<TimedCommand, RemoteError> {
        let nodes = self.bed.nodes.iter().find(|node| node.host.node == settings.node);
        let node = nodes.ok_or_else(|| RemoteError::NoNode { node: settings.node.clone() })?;
        let usual = if settings.when == HookTime::During { WITHOUT_LIMIT } else { USUAL };
        TimedCommand::start(&node.host, &settings.command, settings.timeout_seconds.unwrap_or(usual))
    }

    /// Writes what a hook has printed, also if it has failed.
    fn keep(&self, settings: &HookSettings, number: usize, end: &CommandEnd) -> Result<(), RemoteError> {
        let HookSettings { node, command, when, .. } = settings;
        let time = when.word();
        let name = format!("{}-{}-{time}-{node}-{number}.txt", self.device, self.repetition);
        let path = self.folder.join(name);
        let written =
            fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, format!("{}\n", end.text)));
        written.map_err(|error| RemoteError::HookOutput { path, error })?;
        let (node, command) = (node.clone(), command.clone());
        match end.failure() {
            Some(failure) => Err(RemoteError::Command { node, command, when: time, failure }),
            None => Ok(()),
        }
    }
}

impl HookTime {
    pub fn word(self) -> &'static str {
        match self {
            HookTime::Before => "before",
            HookTime::During => "during",
            HookTime::After => "after",
        }
    }
}
