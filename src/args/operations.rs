//! Flags that concern a running router: its services, and the commands that ask it.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use fullview_filter::address_table::TableEntry;
use fullview_filter::pf::names::protocols;
use fullview_plane::wire::ethernet::Mac;

use fullview_router::control::filter::StatesQuery;
use fullview_router::options::MetricsAddress;
use fullview_table::Prefix;

/// Which router a command asks.
#[derive(Debug, Clone, Args)]
pub struct RouterArgs {
    /// Ask the router of this name, whose socket is /run/fullview/NAME.sock [default: the only router]
    #[arg(long, value_name = "NAME", value_parser = file_name, global = true, conflicts_with = "control")]
    pub name: Option<String>,
    /// Ask the router with this control socket
    #[arg(long, value_name = "PATH", global = true)]
    pub control: Option<PathBuf>,
}

/// The name of a socket, as configurations have it.
fn file_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && !text.contains('/');
    if is_name { Ok(text.to_owned()) } else { Err("give a name without /".into()) }
}

/// The services of `forward`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Operation")]
pub struct OperationsArgs {
    /// Answer `fullview show`, `trace`, `filter table`, `capture-drops` and `reload` on the socket /run/fullview/NAME.sock
    #[arg(long, value_name = "NAME", conflicts_with = "control")]
    pub name: Option<String>,
    /// Answer them on this socket instead
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Serve metrics for Prometheus at ADDRESS:PORT, or on the Unix socket at this path
    #[arg(long, value_name = "WHERE")]
    pub metrics: Option<MetricsAddress>,
    /// Write dropped packets to this pcapng file, each with the reason as its comment
    #[arg(long, value_name = "FILE")]
    pub capture_drops: Option<PathBuf>,
    /// Largest size of the capture in bytes [default: 64 MiB]
    #[arg(long, value_name = "BYTES", requires = "capture_drops")]
    pub capture_limit: Option<u64>,
    /// Most packets that are captured a second [default: 1000]
    #[arg(long, value_name = "N", requires = "capture_drops")]
    pub capture_rate: Option<u64>,
    /// Run as this user once sockets and files are open, with only the privileges that are still needed
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Do not restrict system calls to those that the router needs
    #[arg(long)]
    pub no_seccomp: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0  the file and those that it names are right
  2  one is not: the message names it, the line and how to fix it

Example:
  fullview check-config /etc/fullview/edge.toml")]
pub struct CheckConfigArgs {
    /// The configuration file
    pub file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fullview reload
  fullview reload --name edge

Exit codes:
  0  the file is in force
  1  no router answered within ten minutes, or it has no configuration file
  2  the file or one that it names is wrong, or changes what cannot change while the router runs; nothing was changed")]
pub struct ReloadArgs {
    #[command(flatten)]
    pub router: RouterArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fullview show interfaces
  fullview show routes 192.0.2.1
  fullview show routes 2001:db8::/32 --limit 20
  fullview show fib --json
  fullview show events --name edge
  fullview show filter
  fullview show states 192.0.2.0/24 --protocol tcp --limit 20")]
pub struct ShowRouterArgs {
    #[command(subcommand)]
    pub what: ShowWhat,
    #[command(flatten)]
    pub router: RouterArgs,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// The routes to show.
#[derive(Debug, Clone)]
pub enum ShownRoutes {
    To(IpAddr),
    /// A prefix of either family.
    Within(String),
}

fn shown_routes(text: &str) -> Result<ShownRoutes, String> {
    if let Ok(address) = text.parse() {
        return Ok(ShownRoutes::To(address));
    }
    if !text.contains('/') {
        return Err("give an address, or a prefix such as 192.0.2.0/24 or 2001:db8::/32".into());
    }
    let checked = match text.contains(':') {
        true => text.parse::<Prefix<u128>>().map(drop),
        false => text.parse::<Prefix<u32>>().map(drop),
    };
    checked.map(|()| ShownRoutes::Within(text.to_owned())).map_err(|error| error.to_string())
}

#[derive(Debug, Subcommand)]
pub enum ShowWhat {
    /// Interfaces, their state and their traffic
    Interfaces,
    /// Routes; for an address, the longest match and the path of packets to it
    Routes {
        /// An address to look up, or a prefix: routes to it and to more specific prefixes are listed [default: all of both
        /// families]
        #[arg(value_name = "ADDRESS|PREFIX", value_parser = shown_routes)]
        what: Option<ShownRoutes>,
        /// The kernel's number of the table
        #[arg(long, value_name = "N", default_value_t = 254)]
        table: u32,
        /// List at most this many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Which algorithm serves each table, its memory, and the framework's log
    Fib,
    /// Neighbours that packets can be sent to
    Neighbors,
    /// Packets by what happened to them, and how busy the workers are
    Counters,
    /// Rules of the filter, each with its packets, bytes and states
    Filter,
    /// States of the filter
    States {
        #[command(flatten)]
        choice: StateChoice,
        /// List at most this many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Recent events
    Events {
        /// How many of the last events
        #[arg(long, value_name = "N", default_value_t = 50)]
        last: usize,
    },
}

/// Which states of a filter are meant: those that fulfil all conditions.
#[derive(Debug, Args)]
pub struct StateChoice {
    /// States of flows that this address, or one of this prefix, sends or receives
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = TableEntry::prefix)]
    pub host: Option<TableEntry>,
    /// States of this protocol: a name or a number
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol)]
    pub protocol: Option<u8>,
    /// States that the rule of this number has made
    #[arg(long, value_name = "N")]
    pub rule: Option<u32>,
}

impl StateChoice {
    /// As the router is asked, from the first state on.
    pub fn query(&self) -> StatesQuery {
        let host = self.host.map(|host| host.to_string());
        StatesQuery { host, protocol: self.protocol, rule: self.rule, ..StatesQuery::default() }
    }

    /// Whether all states are meant.
    pub fn is_all(&self) -> bool {
        self.host.is_none() && self.protocol.is_none() && self.rule.is_none()
    }
}

fn protocol(text: &str) -> Result<u8, String> {
    let number = protocols::number(text).or_else(|| text.parse().ok());
    number.ok_or_else(|| "give a name, as tcp, udp, icmp or icmp6, or a number up to 255".to_owned())
}

#[derive(Debug, Args)]
#[command(
    after_help = "Tests for --match, joined by \"and\": inet, inet6, arp, src PREFIX, dst PREFIX, proto NAME-OR-NUMBER, udp, \
tcp, icmp, icmp6, sport N, dport N, vlan N.

Examples:
  fullview trace --match \"dst 192.0.2.0/24 and udp\" --count 3
  fullview trace --interface eth1 --drops
  fullview trace --table view.txt --read in.pcap"
)]
pub struct TraceArgs {
    #[command(flatten)]
    pub router: RouterArgs,
    /// Only packets that come in by this interface
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Only packets that pass these tests
    #[arg(long, value_name = "TESTS", default_value = "")]
    pub r#match: String,
    /// Only packets that are dropped
    #[arg(long)]
    pub drops: bool,
    /// End after this many packets
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// End after this many seconds, however many packets came
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
    /// Print JSON, one packet a line
    #[arg(long)]
    pub json: bool,
    /// Trace without a router, with the routes of this table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "control", "interface", "seconds"])]
    pub table: Option<PathBuf>,
    /// Trace this frame, in hexadecimal digits
    #[arg(long, value_name = "HEX", requires = "table", conflicts_with = "read")]
    pub packet: Option<String>,
    /// Trace the frames of this capture
    #[arg(long, value_name = "PCAP", requires = "table")]
    pub read: Option<PathBuf>,
    /// The router's Ethernet address
    #[arg(long, value_name = "MAC", value_parser = super::station, default_value = "02:00:00:00:00:02", requires = "table")]
    pub mac: Mac,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview capture-drops --write drops.pcapng --match \"src 192.0.2.0/24\" --count 100")]
pub struct CaptureDropsArgs {
    #[command(flatten)]
    pub router: RouterArgs,
    /// The pcapng file; each packet has the reason as its comment
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,
    /// Only packets that come in by this interface
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Only packets that pass these tests; see `fullview trace --help`
    #[arg(long, value_name = "TESTS", default_value = "")]
    pub r#match: String,
    /// End after this many packets
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub count: u64,
    /// End after this many seconds, however many packets came
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
}
