//! What a router answers about itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interface {
    pub number: u16,
    pub name: String,
    pub port: u16,
    pub vlan: Option<u16>,
    pub mac: String,
    pub mtu: u32,
    /// Of IPv6, if it is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu6: Option<u32>,
    pub up: bool,
    pub table: u32,
    /// The families it forwards.
    pub forwards: Vec<String>,
    /// off, loose or strict.
    pub source_check: String,
    pub redirects: bool,
    pub addresses: Vec<String>,
    pub received: Traffic,
    pub sent: Traffic,
    /// Frames that came in and found no room in the ring of its port.
    #[serde(default)]
    pub overruns: u64,
    /// Packets that came in there and were dropped, or found no room on their way out there, by reason; those that
    /// occurred.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// Of what came in by it, frames that the program in the kernel did not forward, by reason; empty where workers
    /// forward.
    #[serde(default)]
    pub program: BTreeMap<String, u64>,
}

/// Packets, and the bytes of their frames without the FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
}

/// A page of routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Routes {
    pub table: u32,
    pub family: String,
    /// Of the whole table, not of the page.
    pub total: usize,
    pub routes: Vec<Route>,
    /// Where the next page begins: after this prefix. `None` on the last one.
    pub next: Option<String>,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Route {
    pub prefix: String,
    pub next_hop: u16,
    /// Where that leads.
    pub leads: String,
}

/// The way of packets to an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Path {
    pub address: String,
    pub table: u32,
    /// The longest match among the routes.
    pub route: Option<Route>,
    /// What the FIB answers, which may lag behind the routes for a moment.
    pub fib_next_hop: u16,
    /// The ways among which flows are shared; one if the next hop is no group.
    pub ways: Vec<Way>,
}

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Way {
    pub next_hop: u16,
    /// Its part of the flows, in slots of the group.
    pub share: u32,
    /// What the routes call it.
    pub leads: String,
    /// What is known about its link.
    pub adjacency: String,
}

/// How a table is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fib {
    pub family: String,
    pub table: u32,
    pub routes: usize,
    pub algorithm: Option<String>,
    /// Whether somebody chose the algorithm by hand.
    pub pinned: bool,
    pub bytes: usize,
    /// Bytes by part.
    pub parts: BTreeMap<String, usize>,
    /// Of the routes that the FIB answers by.
    pub generation: u64,
    /// Of the routes.
    pub rib_generation: u64,
    /// Whether it answers like the routes.
    pub synced: bool,
    /// Why the last compile failed.
    pub failure: Option<String>,
    /// The framework's last line about compiling the table anew.
    pub last_rebuild: Option<String>,
    /// The framework's lines, oldest first.
    pub log: Vec<String>,
}

/// A station on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Neighbor {
    pub address: String,
    pub interface: String,
    pub mac: String,
    pub state: String,
}

/// All that is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    pub received: Traffic,
    pub sent: Traffic,
    /// By reason.
    pub drops: BTreeMap<String, u64>,
    pub punts: BTreeMap<String, u64>,
    /// Packets by what became of them in the program in the kernel that forwards; empty where workers do.
    pub program: BTreeMap<String, u64>,
    /// Or the processors that the program runs on.
    pub workers: Vec<Worker>,
    /// What the host did, where no kernel is one.
    #[serde(default)]
    pub host: BTreeMap<String, u64>,
    /// What the kernel told, and how, where one is followed.
    pub netlink: BTreeMap<String, u64>,
}

/// A worker's share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Worker {
    pub name: String,
    pub received: Traffic,
    /// Seconds it was awake: it sleeps when nothing comes for a while.
    pub busy_seconds: f64,
    /// Seconds since it began.
    pub seconds: f64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Event {
    /// Counted from 1; a gap means that events made room for newer ones.
    pub number: u64,
    /// Microseconds since 1970.
    pub at: u64,
    pub kind: crate::telemetry::events::Kind,
    pub text: String,
}

/// Packets that were noted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Noted {
    pub packets: Vec<Packet>,
    /// Packets that should have been noted while nobody fetched them.
    pub missed: u64,
    /// Whether as many were noted as were asked for.
    pub finished: bool,
}

/// One packet that was noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Packet {
    /// Microseconds since 1970.
    pub at: u64,
    pub interface: String,
    /// The frame as it came in, in hexadecimal digits.
    pub frame: String,
    /// What the loop did.
    pub verdict: String,
    /// What happened to it, stage by stage.
    pub steps: Vec<String>,
    /// What the loop did otherwise than explained; a mistake of one or the other.
    pub disagreement: Option<String>,
}
