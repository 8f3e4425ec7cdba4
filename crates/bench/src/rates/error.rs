//! Why loads cannot be offered or counted.

use std::io;
use std::path::PathBuf;

use fullview_lab::search::SearchError;
use fullview_plane::port::PortError;
use fullview_profile::ProfileError;
use fullview_router::netlink::socket::SocketError;

use super::route_table::RouteTableError;
use crate::testbed::TestbedError;
use crate::veth::VethError;

/// Why loads cannot be offered or counted.
#[derive(Debug, thiserror::Error)]
pub enum RatesError {
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    #[error("{0}")]
    Veth(#[from] VethError),
    #[error("{0}")]
    Search(#[from] SearchError),
    #[error("the generator's interface: {0}")]
    Port(#[from] PortError),
    #[error("the receiver's interface: {0}")]
    Capture(#[source] PortError),
    #[error("the generator and the device need a core each, and this process may use {0}")]
    Cores(usize),
    #[error("core {core}: cores have the numbers 0 to {last}")]
    NoCore { core: usize, last: usize },
    #[error("the generator's core: {0}")]
    Pin(#[source] io::Error),
    #[error("the generator's priority: {0}")]
    RealTime(#[source] TestbedError),
    #[error("the generator's priority: chrt: {0}; install util-linux")]
    NoChrt(#[source] io::Error),
    #[error("no thread napi/{0}-… receives for the device; this needs Linux 5.12 or newer")]
    NoReceivingThread(String),
    #[error("/proc/net/dev has no counters of {0}")]
    NoCounters(&'static str),
    /// Something else sends in the namespaces.
    #[error("{received} packets came out of {sent}: something else sends in the test bed")]
    Foreign { sent: u64, received: u64 },
    /// The generator, not the device, limits the rate.
    #[error(
        "the generator fell behind its schedule by {percent:.1} % at {load:.0} packets/s, {attempts} times in a row: \
         other work takes its core; wait until the machine is quiet"
    )]
    Behind { load: f64, percent: f64, attempts: u32 },
    /// Not even the link carries a load.
    #[error(
        "the generator holds no load of at least {smallest:.0} packets/s over a link without a device: other work takes \
         its core; wait until the machine is quiet"
    )]
    NoLoad { smallest: f64 },
    #[error("the clock was set while delays were measured: measure again")]
    ClockSet,
    #[error("the receiver had no room for {probes} probes")]
    UnreadProbes { probes: u64 },
    #[error(
        "sender and receiver have no common clock: one-way latency needs one node that sends and receives (role = \"sender-receiver\")"
    )]
    NoCommonClock,
    #[error("the program forwards nothing here: the kernel carries all packets, or none come out")]
    ForwardsNothing,
    #[error("{device} needs {command}: `apt install {package}` on Debian")]
    NotInstalled { device: &'static str, command: &'static str, package: &'static str },
    /// The kernel may lack what rules need.
    #[error("{device}: {error}")]
    Rules { device: &'static str, error: TestbedError },
    #[error("the device has no kernel with routes")]
    NoRoutes,
    #[error("the device forwards no packet by the last route {seconds} s after the kernel had it")]
    NotForwarded { seconds: u64 },
    #[error("the routes: {0}")]
    Table(#[from] RouteTableError),
    #[error("{0}")]
    Profile(#[from] ProfileError),
    #[error("{0}")]
    Netlink(#[from] SocketError),
    #[error(
        "{failure}: no trial at {load:.0} packets/s without loss by the route that is to fail, so that losses say nothing"
    )]
    NeverQuiet { failure: &'static str, load: f64 },
    #[error(
        "{failure}: other work disturbed the trial {attempts} times in a row; wait until the machine is quiet"
    )]
    Disturbed { failure: &'static str, attempts: usize },
    #[error("/proc/net/snmp does not say how many packets the kernel forwards")]
    NoForwardingCounter,
    #[error("--command {name}: {error}")]
    CommandStart { name: String, error: io::Error },
    #[error("--command {name}: it ended with status {status} and said: {said}")]
    CommandEnded { name: String, status: i32, said: String },
    /// A device that this lab does not have.
    #[error("there is no device {0:?} here")]
    NoDevice(String),
    /// What other hosts report.
    #[error("{0}")]
    Hosts(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The same, of hosts that may come back.
    #[error("{0}")]
    LostHosts(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No source: what is lost for good is not to be waited for again.
    #[error("{lost}, and is not back: {again}")]
    NotBack { lost: Box<RatesError>, again: Box<RatesError> },
    #[error("{}: there is no campaign to resume; --force in place of --resume begins one", path.display())]
    NothingToResume { path: PathBuf },
    #[error(
        "{}:{line}: this is no turn of this version, so the campaign is not resumed; --force in place of --resume begins one: {error}",
        path.display()
    )]
    Turn { path: PathBuf, line: usize, error: serde_json::Error },
    #[error("{}: the campaign that is to be resumed had {key} = {before}, and now it is {now}", path.display())]
    OtherCampaign { path: PathBuf, key: String, before: String, now: String },
    #[error("{}: {error}", path.display())]
    Archive { path: PathBuf, error: io::Error },
    #[error("interrupted")]
    Stopped,
}

impl RatesError {
    /// Of hosts that were lost, and with which it was not possible to go on.
    pub fn not_back(self, again: RatesError) -> RatesError {
        match again {
            RatesError::Stopped => again,
            _ => RatesError::NotBack { lost: Box::new(self), again: Box::new(again) },
        }
    }

    /// Whether a host was lost that may come back.
    pub fn is_lost(&self) -> bool {
        // A search wraps the error of its trial.
        let first: &(dyn std::error::Error + 'static) = self;
        let mut chain = std::iter::successors(Some(first), |error| error.source());
        chain.any(|error| matches!(error.downcast_ref(), Some(RatesError::LostHosts(_))))
    }
}
