//! Flags for the operators of a running router.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fullview_plane::wire::ethernet::Mac;

use fullview_router::options::MetricsAddress;

/// Where a router is asked.
#[derive(Debug, Clone, Args)]
pub struct Router {
    /// The router of this name: its socket is /run/fullview/NAME.sock [default: the only one there]
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "control")]
    pub name: Option<String>,
    /// The router's control socket
    #[arg(long, value_name = "PATH", global = true)]
    pub control: Option<PathBuf>,
}

/// What `forward` offers to operators.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Operation")]
pub struct OperationsArgs {
    /// Answer `fullview show`, `trace` and `capture-drops` at /run/fullview/NAME.sock
    #[arg(long, value_name = "NAME", conflicts_with = "control")]
    pub name: Option<String>,
    /// Answer them at this socket instead
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Serve Prometheus at ADDRESS:PORT, or at the path of a Unix socket
    #[arg(long, value_name = "WHERE")]
    pub metrics: Option<MetricsAddress>,
    /// Write dropped packets to this pcapng file, each with the reason as its comment
    #[arg(long, value_name = "FILE")]
    pub capture_drops: Option<PathBuf>,
    /// The capture grows no further, in bytes [default: 64 MiB]
    #[arg(long, value_name = "BYTES", requires = "capture_drops")]
    pub capture_limit: Option<u64>,
    /// Packets a second that are captured at most [default: 1000]
    #[arg(long, value_name = "N", requires = "capture_drops")]
    pub capture_rate: Option<u64>,
    /// Run as this user once everything is open, with the few privileges that are still needed
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Do not restrict system calls to those that the router needs
    #[arg(long)]
    pub no_seccomp: bool,
}

#[derive(Debug, Args)]
pub struct CheckConfigArgs {
    /// The configuration file
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct ReloadArgs {
    #[command(flatten)]
    pub router: Router,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fullview show interfaces
  fullview show routes 192.0.2.1
  fullview show routes 2001:db8::/32 --limit 20
  fullview show fib --json
  fullview show events --name edge")]
pub struct ShowRouterArgs {
    #[command(subcommand)]
    pub what: ShowWhat,
    #[command(flatten)]
    pub router: Router,
    /// As JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ShowWhat {
    /// Interfaces, their state and what they carried
    Interfaces,
    /// Routes; of an address the longest match and the way packets to it take
    Routes {
        /// An address, or the prefix at or below which routes are listed [default: all of both families]
        #[arg(value_name = "ADDRESS|PREFIX")]
        what: Option<String>,
        /// The kernel's number of the table
        #[arg(long, value_name = "N", default_value_t = 254)]
        table: u32,
        /// List at most so many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Which algorithm serves each table, its memory, and the framework's log
    Fib,
    /// Neighbours that may be sent to
    Neighbors,
    /// Packets by what became of them, and how busy the workers are
    Counters,
    /// What happened lately
    Events {
        /// The last so many
        #[arg(long, value_name = "N", default_value_t = 50)]
        last: usize,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Tests for --match, joined by \"and\": inet, inet6, arp, src PREFIX, dst PREFIX, proto NAME-OR-NUMBER, udp, tcp, icmp,
icmp6, sport N, dport N, vlan N.

Examples:
  fullview trace --match \"dst 192.0.2.0/24 and udp\" --count 3
  fullview trace --interface eth1 --drops
  fullview trace --table view.txt --read in.pcap"
)]
pub struct TraceArgs {
    #[command(flatten)]
    pub router: Router,
    /// Only packets that come in by this interface
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Only packets that fit
    #[arg(long, value_name = "TESTS", default_value = "")]
    pub r#match: String,
    /// Only packets that are dropped
    #[arg(long)]
    pub drops: bool,
    /// So many packets
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// End after so many seconds, whatever has come
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
    /// As JSON, one packet a line
    #[arg(long)]
    pub json: bool,
    /// Without a router: by the routes of this table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "control", "interface", "seconds"])]
    pub table: Option<PathBuf>,
    /// The frame, in hexadecimal digits
    #[arg(long, value_name = "HEX", requires = "table", conflicts_with = "read")]
    pub packet: Option<String>,
    /// The frames of a capture
    #[arg(long, value_name = "PCAP", requires = "table")]
    pub read: Option<PathBuf>,
    /// The router's Ethernet address
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02", requires = "table")]
    pub mac: Mac,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview capture-drops --write drops.pcapng --match \"src 192.0.2.0/24\" --count 100")]
pub struct CaptureDropsArgs {
    #[command(flatten)]
    pub router: Router,
    /// The pcapng file; each packet has the reason as its comment
    #[arg(long, value_name = "FILE")]
    pub write: PathBuf,
    /// Only packets that come in by this interface
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Only packets that fit; see `fullview trace --help`
    #[arg(long, value_name = "TESTS", default_value = "")]
    pub r#match: String,
    /// So many packets
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub count: u64,
    /// End after so many seconds, whatever has come
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
}
