//! The sections of the configuration file, as they are written. A key that no section has is refused.

mod host;
mod standalone;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

use crate::algorithm;
use crate::log::LogLevel;
use crate::options::{EngineName, MetricsAddress, PortName};
pub use host::{IcmpSection, NeighborLimitsSection, host_settings};
pub use standalone::{
    AddressText, FeedSection, FilterSection, MacText, NeighborSection, WrittenHop, WrittenRoute,
};

/// The whole file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterConfig {
    pub router: RouterSection,
    #[serde(default)]
    pub xdp: XdpSection,
    #[serde(default)]
    pub framework: FrameworkSection,
    /// The sections `[interface.NAME]`, by name.
    #[serde(default)]
    pub interface: BTreeMap<String, InterfaceSection>,
    #[serde(default)]
    pub route: Vec<WrittenRoute>,
    #[serde(default)]
    pub neighbor: Vec<NeighborSection>,
    pub feed: Option<FeedSection>,
    pub filter: Option<FilterSection>,
    #[serde(default)]
    pub icmp: IcmpSection,
    #[serde(default)]
    pub neighbors: NeighborLimitsSection,
    #[serde(default)]
    pub punt: PuntSection,
    #[serde(default)]
    pub control: ControlSection,
    #[serde(default)]
    pub metrics: MetricsSection,
    pub capture: Option<CaptureSection>,
    pub export: Option<ExportSection>,
    #[serde(default)]
    pub confine: ConfineSection,
}

/// `[router]`. A reload may change the algorithm and the preferences.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterSection {
    /// Whether the router mirrors the kernel, which also answers for it.
    #[serde(default = "yes")]
    pub kernel: bool,
    pub interfaces: Vec<String>,
    #[serde(default)]
    pub engine: EngineName,
    /// The kind of the ports of interfaces that name none.
    pub port: Option<PortName>,
    #[serde(default = "one")]
    pub workers: usize,
    /// The core of each worker; empty if workers may run on any core.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// The algorithm of every table whose family has it. `auto` leaves the choice to the framework.
    #[serde(default = "auto")]
    pub algorithm: String,
    /// The preferences that `auto` chooses by: a file of `fullview table calibrate`.
    pub preferences: Option<PathBuf>,
    #[serde(default = "netlink_buffer")]
    pub netlink_buffer: usize,
    /// Whether forwarded packets need not meet the kernel's filters.
    #[serde(default)]
    pub bypass_filters: bool,
    /// Whether interfaces that do not exist are waited for.
    #[serde(default)]
    pub wait: bool,
    /// How much is written to standard error.
    #[serde(default)]
    pub log_level: LogLevel,
}

fn one() -> usize {
    1
}

fn auto() -> String {
    algorithm::AUTO.into()
}

pub fn netlink_buffer() -> usize {
    32 << 20
}

fn yes() -> bool {
    true
}

/// `[framework]`: FreeBSD's sysctls. A reload may change them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrameworkSection {
    pub bucket_time_ms: Option<u64>,
    pub bucket_change_threshold_rate: Option<u32>,
    pub max_sync_delay_ms: Option<u64>,
}

/// `[xdp]`: options of AF_XDP ports.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct XdpSection {
    /// Whether the driver sleeps until it is woken.
    pub need_wakeup: bool,
    /// Has workers poll the card, for that many microseconds each time.
    pub busy_poll_us: Option<u32>,
    /// The most frames of one such poll.
    pub busy_poll_budget: u32,
}

impl Default for XdpSection {
    fn default() -> Self {
        XdpSection { need_wakeup: true, busy_poll_us: None, busy_poll_budget: 64 }
    }
}

/// `[interface.NAME]`. A reload may change it, except for the port, the MAC and the MTU.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterfaceSection {
    /// Takes the place of `router.port`.
    pub port: Option<PortName>,
    #[serde(default)]
    pub source_check: SourceCheckName,
    /// This and the following keys are only for a router without a kernel.
    #[serde(default)]
    pub redirects: bool,
    pub mac: Option<MacText>,
    pub mtu: Option<u32>,
    #[serde(default)]
    pub address: Vec<AddressText>,
    pub table: Option<u32>,
}

/// How the sources of packets are checked (RFC 3704).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceCheckName {
    #[default]
    Off,
    Loose,
    Strict,
}

/// `[punt]`: packets a second that a worker, or a processor that runs the program in the kernel, hands to the kernel at most, of
/// those about which the kernel only sends an ICMP error, or for which it only resolves a neighbour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PuntSection {
    pub no_route: Option<NonZeroU32>,
    pub ttl_expired: Option<NonZeroU32>,
    pub discarded: Option<NonZeroU32>,
    pub no_neighbor: Option<NonZeroU32>,
    pub too_big: Option<NonZeroU32>,
}

/// `[control]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ControlSection {
    /// The socket is /run/fullview/NAME.sock.
    pub name: Option<String>,
    pub socket: Option<PathBuf>,
}

/// `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MetricsSection {
    /// ADDRESS:PORT, or the path of a Unix socket.
    #[serde(default)]
    pub listen: Option<MetricsAddress>,
}

/// `[capture]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaptureSection {
    /// The file that dropped packets are written to.
    pub drops: PathBuf,
    pub bytes: Option<u64>,
    pub packets_per_second: Option<u64>,
}

/// `[export]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExportSection {
    /// The collector of sFlow, ADDRESS:PORT.
    pub sflow: Option<SocketAddr>,
    /// The collector of IPFIX, ADDRESS:PORT.
    pub ipfix: Option<SocketAddr>,
    /// The address that datagrams of sFlow name as the router's.
    pub agent: Option<IpAddr>,
    /// One received packet in so many is sampled.
    pub sample: Option<NonZeroU32>,
    /// How often the counters of interfaces, and the templates of IPFIX, are sent.
    pub counters_s: Option<NonZeroU32>,
}

/// `[confine]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConfineSection {
    /// The user to run as.
    pub user: Option<String>,
    /// Whether system calls are restricted to those that the router needs.
    #[serde(default = "yes")]
    pub seccomp: bool,
}

impl Default for ConfineSection {
    fn default() -> Self {
        ConfineSection { user: None, seccomp: true }
    }
}
