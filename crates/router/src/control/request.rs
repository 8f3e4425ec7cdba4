//! What a router can be asked.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// [`super::status::Interface`]s.
    Interfaces,
    /// A page of routes, [`super::status::Routes`].
    Routes(Routes),
    /// The way of packets to an address, [`super::status::Path`].
    Path(Path),
    /// [`super::status::Fib`]s.
    Fib,
    /// [`super::status::Neighbor`]s.
    Neighbors,
    /// [`super::status::Counters`].
    Counters,
    /// The last [`super::status::Event`]s.
    Events(Events),
    /// Notes packets, as long as the connection lasts or until told otherwise.
    Watch(Watch),
    /// What was noted since the last time: [`super::status::Noted`].
    Noted,
    /// Reads the configuration file again; answered with words that say what is in force.
    Reload,
}

/// Which routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Routes {
    /// Of which table.
    #[serde(default)]
    pub table: u32,
    /// Those at or below this prefix; all of a family if it has length 0.
    pub within: String,
    /// Those after this one: where the page before ended.
    #[serde(default)]
    pub after: Option<String>,
    /// At most so many.
    #[serde(default = "page")]
    pub limit: usize,
}

fn page() -> usize {
    Routes::MOST
}

impl Routes {
    /// The largest page. Everything on it is looked up while the table stands still.
    pub const MOST: usize = 1000;
}

/// To which address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Path {
    /// The destination.
    pub address: IpAddr,
    /// In which table.
    #[serde(default)]
    pub table: u32,
}

/// How many events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Events {
    /// The last so many.
    pub last: usize,
}

/// Which packets are noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Watch {
    /// Whether only packets that are dropped are noted.
    #[serde(default)]
    pub drops_only: bool,
    /// Only those that came in by this interface.
    #[serde(default)]
    pub interface: Option<String>,
    /// Only those that match, in the language of `fullview trace --match`.
    #[serde(default, rename = "match")]
    pub matching: Option<String>,
    /// So many, then no more.
    pub count: u64,
}
