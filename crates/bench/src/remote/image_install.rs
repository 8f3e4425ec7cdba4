//! Has the image of a device run on its host: a kernel, a build, or anything else that a command installs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::inventory::{DeviceSettings, ImageSettings, NodeSettings};
use super::shell::output;
use super::ssh::SshHost;
use super::timed_command::TimedCommand;

/// How often a host that starts again is tried.
const AGAIN: Duration = Duration::from_secs(1);
const INSTALL: u64 = 600;
const BOOT: u64 = 300;

/// An image that is to run on a node.
pub struct ImageInstall<'l> {
    pub node: &'l NodeSettings,
    /// The configuration file of ssh.
    pub config: Option<&'l Path>,
    pub device: &'l DeviceSettings,
    pub image: &'l ImageSettings,
    pub stop: &'l AtomicBool,
}

impl ImageInstall<'_> {
    /// Runs the command, in which the host may be lost, and waits until the host says that the image runs.
    pub fn run(&self) -> Result<(), RemoteError> {
        self.install()?;
        let began = Instant::now();
        let limit = Duration::from_secs(self.image.boot_seconds.unwrap_or(BOOT));
        loop {
            let found = self.running();
            match &found {
                Ok(running) if *running == self.image.expected.trim() => return Ok(()),
                _ if self.stop.load(Ordering::Relaxed) || began.elapsed() >= limit => {
                    return Err(self.does_not_run(limit, found));
                }
                _ => thread::sleep(AGAIN),
            }
        }
    }

    fn connect(&self) -> Result<SshHost, RemoteError> {
        SshHost::connect(self.node, self.config)
    }

    fn install(&self) -> Result<(), RemoteError> {
        let seconds = self.image.install_seconds.unwrap_or(INSTALL);
        let ended = match TimedCommand::start(&self.connect()?, &self.image.install, seconds)?.wait() {
            // The host starts again.
            Err(RemoteError::Lost { .. }) => return Ok(()),
            ended => ended?,
        };
        let (node, device) = (self.node.name.clone(), self.device.name.clone());
        ended.failure().map_or(Ok(()), |failure| Err(RemoteError::NotInstalled { node, device, failure }))
    }

    /// What the host says that it runs.
    fn running(&self) -> Result<String, RemoteError> {
        output(&self.connect()?, &self.image.running)
    }

    fn does_not_run(&self, limit: Duration, found: Result<String, RemoteError>) -> RemoteError {
        let ImageSettings { running, expected, .. } = self.image;
        let found = found.map_or_else(|error| error.to_string(), |said| format!("it prints {said:?}"));
        RemoteError::NotRunning {
            node: self.node.name.clone(),
            device: self.device.name.clone(),
            seconds: limit.as_secs(),
            failure: format!("`{running}` has to print {expected:?}, and {found}"),
        }
    }
}
