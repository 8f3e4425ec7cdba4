//! What the kernel has, and what follows from it: routes in the FIB framework's tables, next hops, groups, views.
//!
//! Pure: fed with events and told the time. [`Mirror::apply`] takes in, [`Mirror::commit`] hands on all that changed,
//! in the order that keeps a FIB from leading where the view knows no way: groups, then the view, then the routes;
//! what is no longer used is forgotten when all FIBs have followed and the last old view is gone.
//!
//! A dump is told of by [`Mirror::begin`] and [`Mirror::end`]: what it did not mention is gone.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::net::IpAddr;

use fullview_table::fib::framework::{Settings, Tables, Time};
use fullview_table::{Address, NextHop};

use fullview_plane::view::Views;

use crate::netlink::event::Link;
use crate::route::MAIN_TABLE;
use commit::Generations;
use family::Family;
use indices::Released;
use links::Links;
use neighbors::Neighbors;
use rules::Rules;
use sets::Sets;

mod commit;
mod dump;
mod family;
mod indices;
mod inspect;
mod links;
mod neighbors;
mod policy;
mod report;
mod routes;
mod rules;
mod sets;
mod stations;
mod told;
mod told_routes;
mod view;
mod ways;

pub use inspect::UsableNeighbor;
pub use policy::InterfacePolicy;
pub use report::Report;
pub use stations::Doubtful;

/// What the kernel has, and what follows from it.
pub struct Mirror {
    links: Links,
    neighbors: Neighbors,
    sets: Sets,
    inet: Family<u32>,
    inet6: Family<u128>,
    tables: Tables,
    views: Views,
    /// Links or objects changed: what sets lead to has to be found out again.
    sets_changed: bool,
    /// Interfaces, addresses, neighbours or tables changed.
    view_changed: bool,
    /// The kernel drops IPv4 routes without a word when links or addresses go, and takes them up again.
    suspects_inet: bool,
    keeps_routes: bool,
    /// Given up, and the generations that all FIBs have to reach.
    following: Vec<(Generations, Vec<Released>, Vec<NextHop>)>,
    rules: Rules,
    /// Links of ours that they concern, by name.
    ruled: Vec<String>,
    /// By the names of interfaces.
    policies: BTreeMap<String, InterfacePolicy>,
    flow_seed: u64,
}

impl Mirror {
    /// Of a kernel of which nothing is known yet, to forward by links of these names; their places are the numbers of
    /// the ports.
    pub fn new(now: Time, ports: Vec<String>, settings: Settings) -> Mirror {
        let mut tables = Tables::new(now, settings);
        tables.create(MAIN_TABLE);
        let (links, sets) = (Links::new(ports), Sets::default());
        let views = Views::new(view::empty(&tables, &sets.groups));
        let mut mirror = Mirror {
            links,
            neighbors: Neighbors::default(),
            sets,
            inet: Family::default(),
            inet6: Family::default(),
            tables,
            views,
            sets_changed: false,
            view_changed: true,
            suspects_inet: false,
            keeps_routes: false,
            following: Vec::new(),
            rules: Rules::default(),
            ruled: Vec::new(),
            policies: BTreeMap::new(),
            flow_seed: 0,
        };
        mirror.create(MAIN_TABLE);
        mirror
    }

    /// A table that packets may be looked up in.
    fn create(&mut self, table: u32) {
        if self.tables.inet.rib(table).is_none() {
            self.tables.create(table);
        }
        self.inet.create(table);
        self.inet6.create(table);
    }

    /// Forwards only what the kernel would forward too, by its settings for each link. Otherwise everything.
    pub fn heed_forwarding(&mut self) {
        self.links.heeds_forwarding = true;
        self.view_changed = true;
    }

    /// Routes by a link that is set down lead nowhere, but stay: there is no kernel that drops them, nor one that tells
    /// of them again when the link is up.
    pub fn keep_routes(&mut self) {
        self.keeps_routes = true;
    }

    /// Mixed into the hash of flows from the next [`Mirror::commit`] on ([`fullview_plane::view::Policy::flow_seed`]).
    pub fn set_flow_seed(&mut self, seed: u64) {
        self.flow_seed = seed;
        self.view_changed = true;
    }

    /// Whether IPv4 routes may have gone, or come, without a word. Asking answers it: dump them.
    pub fn suspects_inet(&mut self) -> bool {
        std::mem::take(&mut self.suspects_inet)
    }

    /// Where workers get their views from.
    pub fn views(&self) -> &Views {
        &self.views
    }

    /// The tables that follow.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The same, to choose algorithms.
    pub fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Addresses whose packets are for this host, broadcasts of its networks among them.
    pub fn local_addresses(&self) -> HashSet<IpAddr> {
        let inet = self.inet.local_hosts().map(|address| IpAddr::V4(address.to_ip()));
        let inet6 = self.inet6.local_hosts().map(|address| IpAddr::V6(address.to_ip()));
        inet.chain(inet6).collect()
    }

    /// The link that has a port's name now.
    pub fn port_link(&self, port: usize) -> Option<&Link> {
        self.links.by_name(self.links.ports().get(port)?)
    }
}
