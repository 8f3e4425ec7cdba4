//! What a router is configured to do, as plain data. The configuration file and the command line become these types; the
//! daemon and its operations read them.

mod choice;
mod operations;
pub mod plan;
mod punts;

use std::collections::BTreeMap;

use fullview_plane::port::xdp::XdpOptions;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::framework;

use crate::filter::FilterOptions;
use crate::host::config::HostSettings;
use crate::mirror::InterfacePolicy;
pub use choice::{EngineName, PortName, interface_address};
pub use operations::{CaptureOptions, ExportOptions, MetricsAddress, OperationsOptions};
use plan::Plan;
pub use punts::PuntRates;

/// Everything that the daemon needs to know before it starts.
pub struct RouterOptions {
    /// The interfaces to forward between. An interface's place in this list is the number of its port.
    pub interfaces: Vec<String>,
    pub engine: EngineName,
    /// A configured setting that only threads have, if there is one.
    pub threads_only: Option<&'static str>,
    /// The lookup algorithm of every table whose family has it. `None` leaves the choice to the framework.
    pub algorithm: Option<String>,
    pub framework: framework::Settings,
    /// The receive buffer, in bytes, of the netlink socket on which the kernel reports changes.
    pub netlink_buffer: usize,
    pub workers: usize,
    pub ports: PortOptions,
    /// Whether forwarded packets need not meet the kernel's filters.
    pub bypass_filters: bool,
    /// Whether interfaces that do not exist are waited for.
    pub wait: bool,
    /// Policies by the names of interfaces.
    pub policies: BTreeMap<String, InterfacePolicy>,
    /// How many packets the kernel gets that only cost it time.
    pub punts: PuntRates,
    /// What packets pass, if they are filtered.
    pub filter: Option<FilterOptions>,
    /// The configuration of a router without a kernel; `None` if the router mirrors the kernel.
    pub standalone: Option<StandaloneConfig>,
}

/// How the router opens its ports.
#[derive(Clone)]
pub struct PortOptions {
    /// The kind of each port, in the order of the interfaces.
    pub kinds: Vec<PortName>,
    /// Options of an AF_XDP socket; each receive queue has one.
    pub xdp: XdpOptions,
    /// The core of each worker; empty if workers may run on any core.
    pub cores: Vec<usize>,
}

impl PortOptions {
    /// Whether the port of that number can be opened only while its interface is up.
    pub fn needs_up(&self, number: usize) -> bool {
        self.kinds.get(number).is_some_and(|kind| kind.may_be_xdp())
    }
}

/// The initial configuration of a router without a kernel.
pub struct StandaloneConfig {
    pub plan: Plan,
    /// The configured MAC of each port, if it has one.
    pub macs: Vec<Option<Mac>>,
    /// Limits and timers of the router's own host.
    pub host: HostSettings,
}

/// The options that a reload may change while the router runs.
#[derive(Clone)]
pub struct LiveOptions {
    /// `None` leaves the choice to the framework.
    pub algorithm: Option<String>,
    pub framework: framework::Settings,
    pub policies: BTreeMap<String, InterfacePolicy>,
    /// The plan of a router without a kernel.
    pub plan: Option<Plan>,
}
