//! The answers of a router, as they stand in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::EventKind;

/// What became of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reloaded {
    /// The text says which configuration is in force.
    InForce(String),
    /// Nothing was changed. The text says what is wrong with the file, or with one that it names, or what cannot change while
    /// the router runs.
    Refused(String),
}

/// An interface, and what it carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct InterfaceStatus {
    pub number: u16,
    pub name: String,
    pub port: u16,
    pub vlan: Option<u16>,
    pub mac: String,
    pub mtu: u32,
    /// The MTU of IPv6, if it is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu6: Option<u32>,
    /// Whether it is set up and has a carrier.
    pub up: bool,
    /// Whether it is set up, with or without a carrier.
    #[serde(default)]
    pub admin_up: bool,
    pub table: u32,
    /// The families that it forwards: inet, inet6.
    pub forwards: Vec<String>,
    /// The check of sources: off, loose or strict.
    pub source_check: String,
    pub redirects: bool,
    pub addresses: Vec<String>,
    pub received: TrafficCount,
    pub sent: TrafficCount,
    /// Frames that came in while the ring of the port was full.
    #[serde(default)]
    pub overruns: u64,
    /// Packets that came in by the interface and were dropped, or that its port had no room to send, by reason. Only
    /// reasons that occurred.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// What forwards the packets that come in by the interface.
    #[serde(default)]
    pub engine: EngineStatus,
    /// Frames that came in by the interface and that the program in the kernel did not forward, by reason. Empty if
    /// workers forward.
    #[serde(default)]
    pub program: BTreeMap<String, u64>,
}

/// An engine, and the reason for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// As in `--engine`: tc, xdp, xdp-generic or threads.
    pub name: String,
    pub why: String,
}

/// A count of packets, and of the bytes of their frames without the FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficCount {
    pub packets: u64,
    pub bytes: u64,
}

/// A page of routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoutesPage {
    pub table: u32,
    pub family: String,
    /// The routes of the whole table, not of the page.
    pub total: usize,
    pub routes: Vec<RouteStatus>,
    /// The next page begins after this prefix. `None` on the last page.
    pub next: Option<String>,
}

/// A route, and its next hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RouteStatus {
    pub prefix: String,
    pub next_hop: u16,
    /// The next hop, described.
    pub leads: String,
}

/// The path of packets to an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathStatus {
    pub address: String,
    pub table: u32,
    /// The longest match among the routes.
    pub route: Option<RouteStatus>,
    /// The next hop that the FIB answers, which may lag behind the routes for a moment.
    pub fib_next_hop: u16,
    /// The next hops among which flows are shared: one, unless the next hop is a group.
    pub ways: Vec<PathMember>,
}

/// One of the next hops of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathMember {
    pub next_hop: u16,
    /// Its share of the flows, in slots of the group.
    pub share: u32,
    /// The next hop, described as the routes have it.
    pub leads: String,
    /// The adjacency: how frames are sent to it.
    pub adjacency: String,
}

/// The FIB of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FibStatus {
    pub family: String,
    pub table: u32,
    pub routes: usize,
    pub algorithm: Option<String>,
    /// Whether the algorithm was configured, and not chosen by preference.
    pub pinned: bool,
    pub bytes: usize,
    /// Bytes by part.
    pub parts: BTreeMap<String, usize>,
    /// The generation of the routes that the FIB was compiled from.
    pub generation: u64,
    /// The generation of the routes now.
    pub rib_generation: u64,
    /// Whether the FIB has all changes of the routes.
    pub synced: bool,
    /// Why the last compile failed.
    pub failure: Option<String>,
    /// The framework's last line about compiling the table again.
    pub last_rebuild: Option<String>,
    /// The framework's lines, oldest first.
    pub log: Vec<String>,
}

/// A neighbour on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NeighborStatus {
    pub address: String,
    pub interface: String,
    pub mac: String,
    pub state: String,
}

/// All counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CountersStatus {
    pub received: TrafficCount,
    pub sent: TrafficCount,
    /// Dropped packets by reason.
    pub drops: BTreeMap<String, u64>,
    pub punts: BTreeMap<String, u64>,
    /// Packets that the kernel got instead of being forwarded, by reason, and those that it did not get because they were too
    /// many. Only reasons that occurred; empty without a kernel.
    #[serde(default)]
    pub to_kernel: BTreeMap<String, PuntStatus>,
    /// What the program in the kernel did with packets, by outcome. Empty if workers forward.
    pub program: BTreeMap<String, u64>,
    /// The workers, or the processors that the program in the kernel runs on.
    pub workers: Vec<WorkerStatus>,
    /// What the router's own host did. Empty if the kernel is the host.
    #[serde(default)]
    pub host: BTreeMap<String, u64>,
    /// Counts of netlink messages. Empty in a router without a kernel.
    pub netlink: BTreeMap<String, u64>,
}

/// What became of the packets of one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PuntStatus {
    /// The kernel got them.
    pub handed: u64,
    /// They were over the limit of their reason, and were dropped.
    pub limited: u64,
    /// There was no room on the way to the kernel, and they were dropped.
    pub lost: u64,
}

/// What a worker counted, and how busy it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkerStatus {
    pub name: String,
    pub received: TrafficCount,
    /// Seconds that the worker was awake. It sleeps while no packets come.
    pub busy_seconds: f64,
    /// Seconds since the worker started.
    pub seconds: f64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EventStatus {
    /// Numbers count from 1. Events before the first one listed made room for newer ones.
    pub number: u64,
    /// Microseconds since 1970.
    pub at: u64,
    pub kind: EventKind,
    pub text: String,
}

/// The packets that a watch noted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NotedPackets {
    pub packets: Vec<NotedPacket>,
    /// Packets that were not noted because the client did not fetch the earlier ones in time.
    pub missed: u64,
    /// Whether the watch has noted as many packets as were asked for.
    pub finished: bool,
}

/// One packet that was noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NotedPacket {
    /// Microseconds since 1970.
    pub at: u64,
    pub interface: String,
    /// The frame as it came in, in hexadecimal digits.
    pub frame: String,
    /// The length of the whole frame in bytes, of which `frame` may be the beginning.
    pub frame_len: u32,
    /// What the forwarding loop, or the program in the kernel, did with the packet.
    pub verdict: String,
    /// The explanation, stage by stage.
    pub steps: Vec<String>,
    /// What it did differently from the explanation, if it did: a mistake of one of them.
    pub disagreement: Option<String>,
}
