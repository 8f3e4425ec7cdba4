//! Lines between the program that measures and its copies on the nodes: one of JSON for each request and each answer.
//! A line [`ALIVE`] has no answer: it only says that the connection is.

use std::net::Ipv4Addr;

use fullview_lab::host::Host;
use serde::{Deserialize, Serialize};

use super::inventory::{DeviceKind, InterfaceNet};
use crate::rates::Offered;
use crate::served::ServedBuild;

/// The word of the command line that starts an agent.
pub const COMMAND: &str = "testbed-agent";
/// What a side says that has nothing to ask.
pub const ALIVE: &str = "alive";

/// What an agent is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRequest {
    /// Who it is, and on which machine.
    Facts,
    /// Sends marks from these interfaces, and listens there.
    Exchange(ExchangeRequest),
    /// Prepares the interfaces of a host, until the agent ends.
    Host(Vec<String>),
    /// Starts a device, which replaces the one before.
    Device(DeviceRequest),
    /// Packets that the device's program has sent.
    Forwarded,
    StopDevice,
    /// Offers these loads at once, each from a core of its own.
    Offer(Vec<OfferRequest>),
    /// The same with probes, which end at an interface of the same node.
    Probe(ProbeRequest),
    /// Counts packets to this address at an interface, until the agent ends.
    CountAt {
        interface: String,
        destination: Ipv4Addr,
    },
    /// Packets counted so far.
    Count,
    /// The same, when no more come for so long.
    Settled {
        settle_ms: u64,
    },
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReply {
    Facts(Box<NodeFacts>),
    Heard(Vec<HeardMark>),
    Offered(Offered),
    Probed(ProbedLoad),
    Count(u64),
    Done,
    Error(String),
}

/// What a machine is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeFacts {
    pub build: ServedBuild,
    pub host: Host,
    pub interfaces: Vec<InterfaceFacts>,
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

/// An interface of a device, and the host at its wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DevicePort {
    pub interface: String,
    pub net: InterfaceNet,
    pub neighbor: Option<DeviceNeighbor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceNeighbor {
    pub address: Ipv4Addr,
    pub mac: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfferRequest {
    pub interface: String,
    pub core: usize,
    /// Ethernet addresses of the interface and of the device's one.
    pub macs: [String; 2],
    pub addresses: [Ipv4Addr; 2],
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
