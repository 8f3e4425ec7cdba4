//! The devices that are measured.

use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::bed::{BedPlan, EGRESS, RateBed};
use super::cores::keep;
use super::error::RatesError;
use super::generator::offer;
use crate::testbed::run;
use crate::veth::{RouterProcess, RouterProgram};

/// So often a program gets packets until it forwards some: it learns the neighbours first.
const ATTEMPTS: usize = 100;
const FIRST_PACKETS: Duration = Duration::from_millis(50);
const FIRST_LOAD: f64 = 1000.0;

/// Accepts the first packet of a flow, and the others by the flow's state.
const STATEFUL: &str = "table inet rates { chain forward { type filter hook forward priority 0; policy drop; \
                        ct state established,related accept; ct state new udp dport 9 accept; }; }";

/// What is between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// No device: a cable. Its rates are the test bed's own
    Link,
    /// The Linux kernel's forwarding
    Kernel,
    /// The same, with rules of nftables that keep the state of each flow
    KernelStateful,
    /// A kernel that does not forward: its rates are 0
    Off,
    /// `fullview forward --engine auto`
    Auto,
    /// `fullview forward --engine threads`
    Threads,
    /// `fullview forward --engine tc`
    Tc,
    /// `fullview forward --engine xdp`
    Xdp,
    /// `fullview forward --engine xdp-generic`
    XdpGeneric,
}

impl DeviceName {
    /// All but the one that forwards nothing.
    pub const USUAL: [DeviceName; 8] = {
        use DeviceName::*;
        [Link, Kernel, KernelStateful, Auto, Threads, Tc, Xdp, XdpGeneric]
    };

    /// How the command line names it.
    pub fn word(self) -> &'static str {
        match self {
            DeviceName::Link => "link",
            DeviceName::Kernel => "kernel",
            DeviceName::KernelStateful => "kernel-stateful",
            DeviceName::Off => "off",
            DeviceName::Auto => "auto",
            DeviceName::Threads => "threads",
            DeviceName::Tc => "tc",
            DeviceName::Xdp => "xdp",
            DeviceName::XdpGeneric => "xdp-generic",
        }
    }

    /// The word of `--engine`, of devices that are this program.
    fn engine(self) -> Option<&'static str> {
        use DeviceName::*;
        (!matches!(self, Link | Kernel | KernelStateful | Off)).then(|| self.word())
    }
}

/// A device that runs. It ends when this value is dropped, the program before its namespaces.
pub struct Device {
    router: Option<RouterProcess>,
    pub bed: RateBed,
}

impl Device {
    /// Starts a device, and waits until it forwards if it is a program.
    pub fn start(name: DeviceName, plan: BedPlan, program: &Path) -> Result<Device, RatesError> {
        let bed = match name {
            DeviceName::Link => RateBed::direct(plan)?,
            _ => RateBed::routed(plan, name != DeviceName::Off)?,
        };
        let mut device = Device { router: None, bed };
        if name == DeviceName::KernelStateful {
            device.set_rules()?;
        }
        if let Some(engine) = name.engine() {
            device.start_router(engine, program)?;
        }
        Ok(device)
    }

    fn set_rules(&self) -> Result<(), RatesError> {
        let Some(namespace) = &self.bed.router else { return Ok(()) };
        Ok(run("ip", &["netns", "exec", namespace.name(), "nft", "-f", "-"], STATEFUL)?)
    }

    /// The program inherits the core of the thread that starts it.
    fn start_router(&mut self, engine: &str, program: &Path) -> Result<(), RatesError> {
        let Some(namespace) = &self.bed.router else { return Ok(()) };
        let interfaces = format!("{},{EGRESS}", self.bed.ingress);
        let options = ["--quiet".to_owned()];
        let router = RouterProgram { program, interfaces: &interfaces, engine, options: &options };
        let core = self.bed.cores.device;
        let started = thread::scope(|scope| {
            let start = || keep(None, core).and_then(|()| Ok(RouterProcess::start(namespace, &router)?));
            scope.spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        self.router = Some(started?);
        self.wait()
    }

    /// Sends packets until the program forwards some. Otherwise the kernel alone would be measured in its name.
    fn wait(&self) -> Result<(), RatesError> {
        let Some(router) = &self.router else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            offer(&self.bed, FIRST_LOAD, FIRST_PACKETS)?;
            if router.forwarded()? > 0 {
                return Ok(());
            }
        }
        Err(RatesError::ForwardsNothing)
    }
}
