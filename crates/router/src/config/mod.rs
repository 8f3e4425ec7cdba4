//! The configuration file of `fullview forward --config`: TOML, and strict. An unknown key, a wrong type or a value that
//! cannot be is refused with its line and column.
//!
//! What may change while the router runs is [`Live`]; everything else is refused by a reload, and needs a restart.

pub mod alone;
mod choice;
mod host;
mod names;
pub mod reload;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::mirror::InterfacePolicy;
use anyhow::{Context, anyhow, bail, ensure};
use fullview_plane::interface::SourceCheck;
use fullview_plane::port::xdp::{BusyPoll, XdpOptions};
use fullview_table::fib::framework;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::Deserialize;

use crate::algorithm;
use crate::algorithm::{Names, RouterSettings};
use crate::control;
use crate::daemon::PortOptions;
use crate::daemon::alone::plan::Plan;
use crate::error::BadInput;
use crate::operations::{self, MetricsAt, capture};
pub use choice::{EngineName, PortName, interface_address};

/// The line and column of what cannot be, where it has a place.
fn with_place(error: anyhow::Error, text: &str) -> anyhow::Error {
    let Some(at) = error.downcast_ref::<alone::Misfit>().and_then(|misfit| misfit.at.clone()) else {
        return error;
    };
    let before = text.get(..at.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    let what = text.get(at).unwrap_or_default();
    anyhow!("at line {line}, column {column}, {what}: {error}")
}

/// A longer file is none of ours; a device would never end.
const LONGEST: u64 = 1 << 20;

/// A file that somebody wrote by hand, or one of `fullview table calibrate`.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {LONGEST} bytes"),
        ));
    }
    String::from_utf8(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// The file as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    pub router: Router,
    #[serde(default)]
    pub xdp: Xdp,
    #[serde(default)]
    pub framework: Framework,
    /// By name.
    #[serde(default)]
    pub interface: BTreeMap<String, Interface>,
    #[serde(default)]
    pub route: Vec<alone::WrittenRoute>,
    #[serde(default)]
    pub neighbor: Vec<alone::Neighbor>,
    pub feed: Option<alone::Feed>,
    #[serde(default)]
    pub icmp: host::Icmp,
    #[serde(default)]
    pub neighbors: host::Neighbors,
    #[serde(default)]
    pub control: Control,
    #[serde(default)]
    pub metrics: Metrics,
    pub capture: Option<Capture>,
    #[serde(default)]
    pub confine: Confine,
}

/// `[router]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Router {
    /// Whether the kernel says what there is, and answers for it.
    #[serde(default = "yes")]
    pub kernel: bool,
    pub interfaces: Vec<String>,
    #[serde(default)]
    pub engine: EngineName,
    /// Of every interface that does not say otherwise.
    #[serde(default)]
    pub port: PortName,
    #[serde(default = "one")]
    pub workers: usize,
    /// On which the workers run, one each; anywhere, if there are none.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Of every table whose family has it; `auto` leaves the choice to the framework. May change.
    #[serde(default = "auto")]
    pub algorithm: String,
    /// By which `auto` chooses: a file of `fullview table calibrate`. May change.
    pub preferences: Option<PathBuf>,
    #[serde(default = "netlink_buffer")]
    pub netlink_buffer: usize,
}

/// As many as the kernel spreads flows over.
const MOST_WORKERS: usize = 256;

fn one() -> usize {
    1
}

fn auto() -> String {
    algorithm::AUTO.into()
}

fn netlink_buffer() -> usize {
    32 << 20
}

/// `[framework]`: FreeBSD's sysctls. May change.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Framework {
    pub bucket_time_ms: Option<u64>,
    pub bucket_change_threshold_rate: Option<u32>,
    pub max_sync_delay_ms: Option<u64>,
}

/// `[xdp]`: how AF_XDP ports work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Xdp {
    /// Whether the driver sleeps until it is called.
    pub need_wakeup: bool,
    /// Has workers poll the card, so long a look.
    pub busy_poll_us: Option<u32>,
    /// And so many frames a look.
    pub busy_poll_budget: u32,
}

impl Default for Xdp {
    fn default() -> Self {
        Xdp { need_wakeup: true, busy_poll_us: None, busy_poll_budget: 64 }
    }
}

/// `[interface.NAME]`. May change, but for its port.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Interface {
    /// In place of `router.port`.
    pub port: Option<PortName>,
    #[serde(default)]
    pub source_check: Check,
    #[serde(default)]
    pub redirects: bool,
    /// From here on: only without a kernel. What other stations know it by stays.
    pub mac: Option<alone::Station>,
    pub mtu: Option<u32>,
    #[serde(default)]
    pub address: Vec<alone::Own>,
    pub table: Option<u32>,
}

/// How sources are checked (RFC 3704).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    #[default]
    Off,
    Loose,
    Strict,
}

/// `[control]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Control {
    /// The socket is /run/fullview/NAME.sock.
    pub name: Option<String>,
    pub socket: Option<PathBuf>,
}

/// `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Metrics {
    /// ADDRESS:PORT, or the path of a Unix socket.
    #[serde(default)]
    pub listen: Option<MetricsAt>,
}

/// `[capture]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capture {
    pub drops: PathBuf,
    pub bytes: Option<u64>,
    pub packets_per_second: Option<u64>,
}

/// `[confine]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Confine {
    /// Whom to run as.
    pub user: Option<String>,
    /// Whether system calls are restricted to those that the router needs.
    #[serde(default = "yes")]
    pub seccomp: bool,
}

fn yes() -> bool {
    true
}

impl Default for Confine {
    fn default() -> Self {
        Confine { user: None, seccomp: true }
    }
}

/// What may change while the router runs.
#[derive(Clone)]
pub struct Live {
    /// `None` leaves the choice to the framework.
    pub algorithm: Option<String>,
    pub settings: framework::Settings,
    pub policies: BTreeMap<String, InterfacePolicy>,
    /// Without a kernel.
    pub plan: Option<Plan>,
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> anyhow::Result<Config> {
        let cannot = |error| BadInput(format!("{}: cannot read the configuration: {error}", path.display()));
        let text = read(path).map_err(cannot)?;
        Config::parse(&text).map_err(|error| BadInput(format!("{}: {error:#}", path.display())).into())
    }

    /// Checks a text.
    pub fn parse(text: &str) -> anyhow::Result<Config> {
        let config: Config = toml::from_str(text)?;
        config.check().map_err(|error| with_place(error, text))?;
        Ok(config)
    }

    /// Says what cannot be.
    pub fn check(&self) -> anyhow::Result<()> {
        let Router { interfaces, workers, .. } = &self.router;
        ensure!(!interfaces.is_empty(), "router.interfaces: name at least one");
        ensure!((1..=MOST_WORKERS).contains(workers), "router.workers: give 1 to {MOST_WORKERS}");
        names::check(interfaces)?;
        self.check_interfaces()?;
        self.check_cores()?;
        let stands = if self.router.kernel { Config::check_with_kernel } else { Config::check_alone };
        stands(self)?;
        let both = self.control.name.is_some() && self.control.socket.is_some();
        ensure!(!both, "control: name and socket are two ways to say one thing; leave one out");
        let is_file_name = |name: &String| !name.is_empty() && !name.contains('/');
        ensure!(self.control.name.iter().all(is_file_name), "control.name: give a name without /");
        algorithm::check::<u32>(&self.lookup())?;
        self.settings().map(drop)
    }

    fn check_interfaces(&self) -> anyhow::Result<()> {
        let interfaces = &self.router.interfaces;
        for (name, interface) in &self.interface {
            let is_of = |port: &String| name.strip_prefix(port).is_some_and(|rest| rest.starts_with('.'));
            let known = interfaces.contains(name) || interfaces.iter().any(is_of);
            ensure!(known, "interface.{name}: it is neither one of router.interfaces nor a VLAN of one");
            let is_port = interfaces.contains(name);
            let has_port = interface.port.is_none() && interface.mac.is_none();
            ensure!(
                is_port || has_port,
                "interface.{name}: a VLAN has the port and the MAC of its interface"
            );
        }
        Ok(())
    }

    fn check_cores(&self) -> anyhow::Result<()> {
        let Router { cores, workers, .. } = &self.router;
        let each = cores.is_empty() || cores.len() == *workers;
        ensure!(each, "router.cores: name as many as there are workers, {workers}, or none");
        let ours = sched_getaffinity(None).context("router.cores")?;
        let other = cores.iter().find(|core| **core >= CpuSet::MAX_CPU || !ours.is_set(**core));
        other.map_or(Ok(()), |core| bail!("router.cores: this program may not run on core {core}"))
    }

    fn check_with_kernel(&self) -> anyhow::Result<()> {
        if let Some(said) = alone::said(self) {
            bail!("{said}: the kernel says that; only a router with `kernel = false` is told");
        }
        let chooses = self.router.engine == EngineName::User || self.router.algorithm == algorithm::AUTO;
        ensure!(
            chooses,
            "router.algorithm: the program in the kernel knows its own algorithms only; leave it out"
        );
        let by_program = self.router.engine != EngineName::User;
        let no_ports = self.ports().kinds.iter().all(|kind| *kind == PortName::Packet);
        ensure!(!by_program || no_ports, "router.port: the program in the kernel uses none; leave it out");
        let has_tap = self.ports().kinds.contains(&PortName::Tap);
        ensure!(!has_tap, "router.port: a tap is a port of a router with `kernel = false`");
        Ok(())
    }

    fn check_alone(&self) -> anyhow::Result<()> {
        ensure!(
            self.router.engine == EngineName::User,
            "router.engine: without a kernel there is only `user`"
        );
        let kinds = self.ports().kinds;
        let are_ours = kinds.iter().all(|kind| matches!(kind, PortName::Tap | PortName::Xdp));
        ensure!(
            are_ours,
            "router.port: without a kernel behind it a router has `tap` ports, its own, or `xdp` ports: of packet sockets the \
             kernel sees the frames too, and would answer them"
        );
        for (name, kind) in self.router.interfaces.iter().zip(kinds) {
            let has_mac = self.interface.get(name).is_some_and(|interface| interface.mac.is_some());
            ensure!(
                kind == PortName::Tap || !has_mac,
                "interface.{name}.mac: the card has one; leave it out"
            );
        }
        self.plan()?;
        Ok(())
    }

    fn lookup(&self) -> RouterSettings {
        let names = Names::Several(vec![self.router.algorithm.clone(), algorithm::AUTO.into()]);
        RouterSettings { algorithm: Some(names), modules: None, preferences: self.router.preferences.clone() }
    }

    /// What operators have of it.
    pub fn operations(&self) -> operations::Options {
        let named = || self.control.name.as_deref().map(control::default_path);
        operations::Options {
            control: self.control.socket.clone().or_else(named),
            metrics: self.metrics.listen.clone(),
            capture_drops: self.capture.as_ref().map(Capture::options),
        }
    }

    /// How frames come in and go out.
    pub fn ports(&self) -> PortOptions {
        let own = |name| self.interface.get(name).and_then(|interface| interface.port);
        let kinds = self.router.interfaces.iter().map(|name| own(name).unwrap_or(self.router.port)).collect();
        let Xdp { need_wakeup, busy_poll_us, busy_poll_budget: budget } = self.xdp;
        let busy_poll = busy_poll_us.map(|micros| BusyPoll { micros, budget });
        let xdp = XdpOptions { need_wakeup, busy_poll, ..XdpOptions::default() };
        PortOptions { kinds, xdp, cores: self.router.cores.clone() }
    }

    /// What cannot change and differs, of interfaces that both have.
    fn port_differences(&self, new: &Config) -> Vec<String> {
        let (old, new) = (self.frozen_ports(), new.frozen_ports());
        let both = old.iter().filter_map(|(name, port)| Some((name, port, new.get(name)?)));
        let differs = both.flat_map(|(name, (kind, mac, mtu), other)| {
            let keys = [("port", *kind != other.0), ("mac", *mac != other.1), ("mtu", *mtu != other.2)];
            keys.map(|(key, differs)| differs.then(|| format!("interface.{name}.{key}")))
        });
        differs.flatten().collect()
    }

    /// What of each port cannot change: its kind, MAC and MTU.
    fn frozen_ports(&self) -> BTreeMap<&str, (PortName, Option<alone::Station>, Option<u32>)> {
        let port = |(name, kind): (&'_ String, PortName)| {
            let (mac, mtu) = self.interface.get(name).map_or((None, None), |of| (of.mac, of.mtu));
            (kind, mac, mtu)
        };
        let ports = self.router.interfaces.iter().zip(self.ports().kinds);
        ports.map(|(name, kind)| (name.as_str(), port((name, kind)))).collect()
    }

    fn settings(&self) -> anyhow::Result<framework::Settings> {
        let preferences = algorithm::preferences(&self.lookup())?;
        Ok(framework::Settings { preferences, ..self.framework.settings() })
    }

    /// What may change.
    pub fn live(&self) -> anyhow::Result<Live> {
        let settings = self.settings()?;
        let algorithm = Some(self.router.algorithm.clone()).filter(|name| name != algorithm::AUTO);
        let policies = self.interface.iter().map(|(name, interface)| (name.clone(), interface.policy()));
        let plan = (!self.router.kernel).then(|| self.whole_plan()).transpose()?;
        Ok(Live { algorithm, settings, policies: policies.collect(), plan })
    }

    /// What differs from another configuration and cannot change while the router runs.
    pub fn frozen_differences(&self, new: &Config) -> Vec<String> {
        let (old, new_router) = (&self.router, &new.router);
        let differs = [
            ("router.kernel", old.kernel != new_router.kernel),
            ("router.interfaces", old.interfaces != new_router.interfaces),
            ("router.engine", old.engine != new_router.engine),
            ("router.workers", old.workers != new_router.workers),
            ("router.cores", old.cores != new_router.cores),
            ("xdp", self.xdp != new.xdp),
            ("router.netlink-buffer", old.netlink_buffer != new_router.netlink_buffer),
            ("icmp", self.icmp != new.icmp),
            ("neighbors", self.neighbors != new.neighbors),
            ("control", self.control != new.control),
            ("metrics", self.metrics != new.metrics),
            ("capture", self.capture != new.capture),
            ("confine", self.confine != new.confine),
        ];
        let sections = differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
        sections.chain(self.port_differences(new)).collect()
    }
}

impl Framework {
    fn settings(&self) -> framework::Settings {
        let defaults = framework::Settings::default();
        framework::Settings {
            bucket_time: self.bucket_time_ms.map_or(defaults.bucket_time, Duration::from_millis),
            bucket_change_threshold_rate: self
                .bucket_change_threshold_rate
                .unwrap_or(defaults.bucket_change_threshold_rate),
            max_sync_delay: self.max_sync_delay_ms.map_or(defaults.max_sync_delay, Duration::from_millis),
            ..defaults
        }
    }
}

impl Interface {
    fn policy(&self) -> InterfacePolicy {
        let source_check = match self.source_check {
            Check::Off => SourceCheck::Off,
            Check::Loose => SourceCheck::Loose,
            Check::Strict => SourceCheck::Strict,
        };
        InterfacePolicy { source_check, redirects: self.redirects }
    }
}

impl Capture {
    fn options(&self) -> capture::Options {
        capture::Options {
            file: self.drops.clone(),
            bytes: self.bytes.unwrap_or(capture::Options::BYTES),
            packets_per_second: self.packets_per_second.unwrap_or(capture::Options::PACKETS_PER_SECOND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "[router]\ninterfaces = [\"eth1\", \"eth2\"]\n";

    fn refused(text: &str) -> String {
        format!("{:#}", Config::parse(text).unwrap_err())
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let unknown = refused(&format!("{SMALL}speed = 9\n"));
        assert!(unknown.contains("line 3, column 1") && unknown.contains("`speed`"), "{unknown}");
        assert!(refused("[router]\ninterfaces = \"eth1\"\n").contains("line 2, column 14"));
        assert!(refused(&format!("{SMALL}[interface.eth3]\n")).contains("interface.eth3"));
        assert!(refused(&format!("{SMALL}[interface.eth1]\nsource-check = \"often\"\n")).contains("line 4"));
        assert!(refused(&format!("{SMALL}algorithm = \"fastest\"\n")).contains("\"fastest\""));
        assert!(refused(&format!("{SMALL}[metrics]\nlisten = \"9100\"\n")).contains("line 4, column 10"));
        assert!(refused("[router]\ninterfaces = [\"eth1\", \"eth1\"]\n").contains("named twice"));
        assert!(refused(&format!("{SMALL}workers = 257\n")).contains("1 to 256"));
        assert!(refused(&format!("{SMALL}[control]\nname = \"../edge\"\n")).contains("without /"));
        assert!(refused(&format!("{SMALL}[interface.\"eth1.7\"]\nport = \"xdp\"\n")).contains("a VLAN has"));
        assert!(refused(&format!("{SMALL}engine = \"xdp\"\nport = \"auto\"\n")).contains("uses none"));
    }

    #[test]
    fn what_may_change_is_told_from_what_may_not() {
        let before = Config::parse(SMALL).unwrap();
        let after = Config::parse(&format!(
            "{SMALL}algorithm = \"poptrie\"\n[interface.\"eth1.7\"]\nsource-check = \"strict\"\n[framework]\nmax-sync-delay-ms = 5\n"
        ))
        .unwrap();
        assert!(before.frozen_differences(&after).is_empty());
        let live = after.live().unwrap();
        assert_eq!(live.algorithm.as_deref(), Some("poptrie"));
        assert_eq!(live.settings.max_sync_delay, Duration::from_millis(5));
        assert_eq!(live.policies["eth1.7"].source_check, SourceCheck::Strict);
        let socket = Config::parse(&format!("{SMALL}[interface.eth2]\nport = \"xdp\"\n")).unwrap();
        assert_eq!(socket.ports().kinds, [PortName::Packet, PortName::Xdp]);
        assert_eq!(before.frozen_differences(&socket), ["interface.eth2.port"]);
        let engine = Config::parse(&format!("{SMALL}engine = \"xdp\"\n")).unwrap();
        assert_eq!(before.frozen_differences(&engine), ["router.engine"]);
        let other =
            Config::parse("[router]\ninterfaces = [\"eth1\"]\nworkers = 2\n[control]\nname = \"edge\"\n")
                .unwrap();
        assert_eq!(before.frozen_differences(&other), ["router.interfaces", "router.workers", "control"]);
    }
}
