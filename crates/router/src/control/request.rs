//! The requests that a router answers.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::filter::{FilterQuery, StatesQuery, TableChange, TableQuery, TableTest};
use super::takeover::{HandOverQuery, TakeoverQuery};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The interfaces: a list of [`super::status::InterfaceStatus`].
    Interfaces,
    /// A page of routes: [`super::status::RoutesPage`].
    Routes(RoutesQuery),
    /// The path of packets to an address: [`super::status::PathStatus`].
    Path(PathQuery),
    /// The FIBs: a list of [`super::status::FibStatus`].
    Fib,
    /// The neighbours: a list of [`super::status::NeighborStatus`].
    Neighbors,
    /// All counters: [`super::status::CountersStatus`].
    Counters,
    /// The filter with a page of its rules: [`super::filter::FilterStatus`].
    Filter(FilterQuery),
    /// A page of the filter's states: [`super::filter::StatesPage`].
    States(StatesQuery),
    /// Removes the states that the query chooses: [`super::filter::StatesRemoved`].
    RemoveStates(StatesQuery),
    /// A page of a table of the filter: [`super::filter::TablePage`].
    FilterTable(TableQuery),
    /// Whether a table of the filter contains an address: [`super::filter::TableAnswer`].
    FilterTableTest(TableTest),
    /// Changes a table of the filter: [`super::filter::TableChanged`].
    FilterTableChange(TableChange),
    /// The last events: a list of [`super::status::EventStatus`].
    Events(EventsQuery),
    /// Begins to note packets, until the connection ends or another watch takes this one's place.
    Watch(WatchQuery),
    /// The packets noted since the last such request: [`super::status::NotedPackets`].
    Noted,
    /// Reads the configuration file again: [`super::status::Reloaded`].
    Reload,
    /// Begins a takeover: [`super::takeover::RunningRouter`], with descriptors. Unless [`Request::TakenOver`] follows, it ends
    /// with the connection, and the router goes on.
    TakeOver(TakeoverQuery),
    /// An interface: [`super::takeover::HandedOver`], with descriptors.
    HandOver(HandOverQuery),
    /// The client forwards now: a list of [`super::takeover::ProgramCounts`]. The router ends when the client closes its end
    /// of the connection. Then the states and tables of its filter follow, if it has one, as [`fullview_filter::handover`] writes them;
    /// the router's end is closed when it has ended.
    TakenOver,
}

/// The routes to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RoutesQuery {
    /// The kernel's number of the table.
    #[serde(default)]
    pub table: u32,
    /// Lists the routes to this prefix and to more specific ones: all of a family if its length is 0.
    pub within: String,
    /// Lists the routes after this prefix, the last one of the page before.
    #[serde(default)]
    pub after: Option<String>,
    /// The most routes of the page.
    #[serde(default = "page")]
    pub limit: usize,
}

/// The default of `limit`.
fn page() -> usize {
    RoutesQuery::MAX_LIMIT
}

impl RoutesQuery {
    /// The largest page. The table cannot change while the router's thread collects a page.
    pub const MAX_LIMIT: usize = 1000;
}

/// The address to look up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PathQuery {
    /// The destination of the packets.
    pub address: IpAddr,
    /// The kernel's number of the table.
    #[serde(default)]
    pub table: u32,
}

/// The events to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EventsQuery {
    /// How many of the last events.
    pub last: usize,
}

/// The packets to note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WatchQuery {
    /// Notes dropped packets only.
    #[serde(default)]
    pub drops_only: bool,
    /// Notes only packets that came in by this interface.
    #[serde(default)]
    pub interface: Option<String>,
    /// Notes only packets that match, in the language of `fullview trace --match`.
    #[serde(default, rename = "match")]
    pub matching: Option<String>,
    /// The watch ends after this many packets.
    pub count: u64,
}
