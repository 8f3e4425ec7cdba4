//! Lines between the program that measures and its copies on the nodes: one of JSON for each request and each answer.
//! A line [`ALIVE`] has no answer: it only says that the connection is.

use std::net::IpAddr;
use std::time::Duration;

use fullview_lab::host::Host;
use fullview_profile::CoreProfile;
use serde::{Deserialize, Serialize};

use super::declared::{DeclaredSetting, TunedSetting};
use super::inventory::{DeviceKind, InterfaceNet};
use super::tuning::Tuning;
use crate::rates::{Failure, FailureLinks, HostAddresses, MadeChanges, Offered, ProgramMemory, TableSource};
use crate::served::ServedBuild;
use crate::traffic::frame::FrameSize;

/// The word of the command line that starts an agent.
pub const COMMAND: &str = "testbed-agent";
/// What a side says that has nothing to ask.
pub const ALIVE: &str = "alive";
/// A device that sends without end is not waited for.
pub const SETTLE_CHECKS: u32 = 100;

/// How long an agent waits at most until no more packets come.
pub fn longest_settling(settle_ms: u64) -> Duration {
    Duration::from_millis(settle_ms).saturating_mul(SETTLE_CHECKS)
}

/// What an agent is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequest {
    /// Who it is, and on which machine.
    Facts,
    /// Sends marks from these interfaces, and listens there.
    Exchange(ExchangeRequest),
    /// Takes interfaces for this measurement alone, until the agent ends, and puts back what a killed agent left; with IPv6
    /// also the switch by which the machine forwards it.
    Claim {
        interfaces: Vec<String>,
        is_inet6: bool,
    },
    /// The same for a moment; a dry run only says what a killed agent left.
    Clean {
        interfaces: Vec<String>,
        dry_run: bool,
    },
    /// Compares settings with their declared values, and sets them if it is allowed.
    Tune(TuneRequest),
    /// Settings of the machine and of these interfaces.
    Tuning(Vec<String>),
    /// Prepares the interfaces of a host, until the agent ends.
    Host {
        interfaces: Vec<String>,
        is_inet6: bool,
    },
    /// Starts a device, which replaces the one before.
    Device(DeviceRequest),
    /// Packets that the device's program has sent.
    Forwarded,
    StopDevice,
    /// What all packets are like from now on.
    Traffic(Traffic),
    /// Offers these loads at once, each from a core of its own.
    Offer(Vec<OfferRequest>),
    /// The same with probes, which end at an interface of the same node.
    Probe(ProbeRequest),
    /// Counts packets to this address at an interface, until the agent ends.
    CountAt {
        interface: String,
        destination: IpAddr,
    },
    /// The same to any address.
    CountAll,
    /// Packets counted so far.
    Count,
    /// The same, when no more come for so long.
    Settled {
        settle_ms: u64,
    },
    /// Writes routes into the kernel, which are removed with the device.
    LoadRoutes(RoutesRequest),
    /// Changes so many of them a second.
    ChangeRoutes {
        rate: u32,
        core: Option<usize>,
    },
    /// Ends that.
    EndChanges,
    /// The memory of the device's program.
    Memory,
    /// Whether perf can be started.
    CheckProfile,
    /// Begins to observe this core, or that on which the device is seen most.
    Profile(ProfileRequest),
    EndProfile,
    /// Sets up links of which one is to fail, until the device ends at the latest.
    Links(FailureLinks),
    Repair,
    Fail(Failure),
    /// Puts back what `Links` set up.
    EndLinks,
    /// The time of day, in nanoseconds since 1970.
    Clock,
    /// Keeps the stamps of packets of a family that arrive at these interfaces.
    Capture {
        interfaces: [String; 2],
        is_inet6: bool,
    },
    Captured,
    /// Offers a load with a stamp in each packet.
    Trace(OfferRequest),
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReply {
    Facts(Box<NodeFacts>),
    Heard(Vec<HeardMark>),
    Tuning(Tuning),
    Tuned(Vec<TunedSetting>),
    /// What was put back.
    PutBack(Vec<String>),
    Offered(Offered),
    Probed(ProbedLoad),
    Count(u64),
    Routes(LoadedRoutes),
    Changes(MadeChanges),
    /// Nothing of a device without a program.
    Memory(Option<ProgramMemory>),
    Profile(Box<CoreProfile>),
    /// When it happened, by the clock of the node.
    Moment(u64),
    /// Of each interface.
    Stamps([Vec<u64>; 2]),
    Traced(TracedLoad),
    Done,
    Error(String),
}

/// What a machine is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeFacts {
    pub build: ServedBuild,
    pub host: Host,
    pub interfaces: Vec<InterfaceFacts>,
    /// Whether a generator may run in real time, if the machine can tell.
    #[serde(default)]
    pub real_time: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceFacts {
    pub name: String,
    pub mac: String,
    pub up: bool,
    /// Whether the wire has a signal.
    pub carrier: bool,
    pub driver: Option<String>,
    /// In Mb/s.
    pub speed: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExchangeRequest {
    /// The name of the node in the marks.
    pub node: String,
    /// Tells the marks of this exchange from those of others.
    pub token: u64,
    pub interfaces: Vec<String>,
    pub milliseconds: u64,
}

/// A mark that arrived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeardMark {
    /// Where.
    pub interface: String,
    /// `NODE:INTERFACE` that sent it.
    pub from: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceRequest {
    pub kind: DeviceKind,
    pub engine: Option<String>,
    pub options: Vec<String>,
    pub ports: Vec<DevicePort>,
}

/// Declared settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TuneRequest {
    pub settings: Vec<DeclaredSetting>,
    pub may_set: bool,
    /// Whether they end with the device, not with the agent.
    pub of_device: bool,
}

/// An interface of a device, and the host at its wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DevicePort {
    pub interface: String,
    pub net: InterfaceNet,
    pub neighbor: Option<DeviceNeighbor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceNeighbor {
    pub address: IpAddr,
    pub mac: String,
}

/// The same for all loads of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub size: FrameSize,
    /// To which packets go in turn; none if all go to that of the request.
    pub destinations: Vec<IpAddr>,
}

/// A synthetic table, by two stations at the wire of an interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoutesRequest {
    pub interface: String,
    pub source: TableSource,
    pub gateways: [DeviceNeighbor; 2],
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileRequest {
    pub core: Option<usize>,
    /// The interfaces of the device.
    pub interfaces: Vec<String>,
    /// Whether every program of the machine belongs to it.
    pub everything: bool,
}

/// Packets with stamps that were sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TracedLoad {
    pub offered: Offered,
    pub stamps: Vec<u64>,
}

/// Routes in the kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadedRoutes {
    pub routes: usize,
    pub seconds: f64,
    /// Spread over the table.
    pub destinations: Vec<IpAddr>,
    /// An address of the last one.
    pub last: IpAddr,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfferRequest {
    pub interface: String,
    pub core: usize,
    /// Ethernet addresses of the interface and of the device's one.
    pub macs: [String; 2],
    pub hosts: HostAddresses,
    pub load: f64,
    pub nanoseconds: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeRequest {
    pub offers: Vec<OfferRequest>,
    /// Where packets end.
    pub receiving: String,
    pub seed: u64,
    pub settle_ms: u64,
}

/// What came of a load with probes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbedLoad {
    pub offered: Offered,
    pub received: u64,
    pub probes: u64,
    /// Delays with how often each occurred.
    pub nanoseconds: Vec<(u64, u64)>,
}
