//! The command line: all commands, and the flags of `forward`, `generate` and `ministat`.

use std::path::PathBuf;

mod filter;
mod lab;
pub mod operations;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod rates;
mod table;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod testbed;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::{Mac, MacParseError};
use fullview_router::filter::FilterLanguage;
use fullview_router::log::LogLevel;
use fullview_router::options::{EngineName, PortName, interface_address};

pub use filter::{
    ExplainedProtocol, FilterCheckArgs, FilterCommand, FilterExplainArgs, FilterKillArgs, FilterTableArgs,
    FilterTableCommand, TableEntries,
};
use fullview_bench::settings::{ModelName, Size};
pub use lab::{
    AaArgs, BenchArgs, CompareArgs, ExperimentArgs, ExportArgs, ImportArgs, LengthArgs, PlanArgs,
    ProfileArgs, ReportArgs,
};
use operations::{CaptureDropsArgs, CheckConfigArgs, OperationsArgs, ReloadArgs, ShowRouterArgs, TraceArgs};
pub use table::{
    CalibrateArgs, ConvertArgs, Feed, Format, NumbersAs, ShowArgs, SynthesizeArgs, TableCommand, VerifyArgs,
};

/// A software router with pluggable route lookup, and the lab that proves what a change does to its forwarding rate.
#[derive(Debug, Parser)]
#[command(name = "fullview", version, about, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes:
  0    done
  1    it could not be done: the message says why
  2    wrong arguments or bad input: the message names the file, the line and how to fix it
  3    measured, but with too few valid blocks to judge every comparison, or some output was wrong
  4    with --gate: some variant is worse than its baseline, or its output was wrong (goes before 3)
  5    with --gate (goes before 3 and 4): the baseline and its copy differ, so that this machine or set-up cannot be trusted today
  130  interrupted; what was measured is kept, --resume goes on

Examples:
  fullview bench experiments/full-view.toml
  fullview bench experiments/full-view.toml --against HEAD~1
  fullview report results/full-view
  fullview table convert view.mrt.bz2 --to bird > static-routes.conf
  fullview ministat -s -w 74 before.pps after.pps")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment file: measure every variant, compare, write the report
    Bench(BenchArgs),
    /// Rebuild the report of a results folder from its raw data
    Report(ReportArgs),
    /// Read a netbenches result directory, check what it publishes, and write its report
    Import(ImportArgs),
    /// Write a campaign's rates as .pps files and gnuplot data
    Export(ExportArgs),
    /// Compare two results folders as far as that is honest
    Compare(CompareArgs),
    /// Measure how precise this machine is for an experiment: copies of its baseline against each other
    Aa(AaArgs),
    /// Say what an experiment takes and what it will see
    Plan(PlanArgs),
    /// Show where the time of each variant goes: flame graphs, and a table of stages
    Profile(ProfileArgs),
    /// Find the highest loads that the kernel and each engine carry, in network namespaces or between hosts
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    Rates(rates::RatesArgs),
    /// Draw and check test beds of several hosts, and remove what killed measurements left behind
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    #[command(subcommand)]
    Testbed(testbed::TestbedCommand),
    /// Measure for the program at the other end of standard input, by docs/reference/testbed.md
    #[cfg(all(feature = "bpf", target_os = "linux"))]
    #[command(hide = true)]
    TestbedAgent,
    /// Take turns in panels of another process, by docs/reference/serve-slices.md
    #[command(hide = true)]
    ServeSlices,
    /// Load, convert, check or generate routing tables
    #[command(subcommand, after_help = TABLE_EXAMPLES)]
    Table(TableCommand),
    /// Check rule sets of packet filters; tables and states of a running router's filter
    #[command(subcommand, after_help = FILTER_EXAMPLES)]
    Filter(FilterCommand),
    /// Forward packets between interfaces of this host, or from a capture file into another
    Forward(Box<ForwardArgs>),
    /// Show the state of a running router
    Show(ShowRouterArgs),
    /// Show stage by stage what happens to packets, in a running router or with a table of routes
    Trace(TraceArgs),
    /// Write a running router's dropped packets to a file, with the reasons
    CaptureDrops(CaptureDropsArgs),
    /// Make a running router read its configuration file again
    Reload(ReloadArgs),
    /// Check a configuration file of `forward --config`
    CheckConfig(CheckConfigArgs),
    /// Write generated traffic to a capture file
    Generate(GenerateArgs),
    /// Compare sets of numbers: a drop-in for FreeBSD's ministat (its own options; see ministat -h)
    #[command(disable_help_flag = true)]
    Ministat(MinistatArgs),
    /// Print the completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLE)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

const TABLE_EXAMPLES: &str = "Examples:
  fullview table show view.mrt.bz2
  fullview table convert view.mrt.bz2 --to bird > static-routes.conf
  fullview table verify view.txt --algorithm dxr
  fullview table synthesize --inet 900000 --inet6 160000 --output view.txt";

const FILTER_EXAMPLES: &str = "Examples:
  fullview filter check /etc/pf.conf
  fullview filter explain rules.conf --in eth1 --out eth2 udp 192.0.2.1:1000 198.51.100.7:53
  fullview filter table bad add 198.51.100.0/24
  fullview filter kill 192.0.2.9";

const COMPLETIONS_EXAMPLE: &str = "Example:
  fullview completions bash > /etc/bash_completion.d/fullview";

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview man --out /usr/local/share/man/man1")]
pub struct ManArgs {
    /// Folder for the page of the program, fullview.1, and those of its commands, such as fullview-bench.1
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Flags of `forward` that do not apply to a capture, and whose values a configuration file has.
const OF_A_RUNNING_ROUTER: [&str; 20] = [
    "log_level",
    "quiet",
    "bypass_filters",
    "filter",
    "filter_language",
    "wait",
    "engine",
    "port",
    "no_need_wakeup",
    "busy_poll",
    "netlink_buffer",
    "workers",
    "name",
    "control",
    "metrics",
    "capture_drops",
    "capture_limit",
    "capture_rate",
    "user",
    "no_seccomp",
];

/// The other flags whose values a configuration file has.
const BESIDE_A_FILE: [&str; 6] = ["table", "write", "algorithm", "preferences", "mac", "address"];

#[derive(Debug, Args)]
#[command(
    after_help = "With --interfaces the router takes links, addresses, neighbours and routes from the kernel: `ip`, BIRD and FRR
work unchanged. Ctrl-C, SIGINT or SIGTERM ends it, and it prints the counters.

Exit codes:
  0    ended by a signal, or at the end of the capture
  1    it could not go on: the message names the interface and says why
  2    wrong arguments, or a host that is not set up for it: the message says how to fix that

Examples:
  fullview forward --interfaces eth1,eth2
  ip netns exec lab fullview forward --interfaces eth1,eth2 --algorithm poptrie
  fullview forward --config examples/static.toml
  fullview forward --table view.txt.gz --read in.pcap --write out.pcap --algorithm auto",
    group = ArgGroup::new("between").args(["interfaces", "config", "read"]).required(true)
)]
pub struct ForwardArgs {
    /// Forward between these interfaces of this host
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["table", "write", "mac", "address"])]
    pub interfaces: Vec<String>,
    /// Forward as this file configures; SIGHUP and `fullview reload` make the router read it again
    #[arg(long, value_name = "FILE", conflicts_with_all = BESIDE_A_FILE, conflicts_with_all = OF_A_RUNNING_ROUTER)]
    pub config: Option<PathBuf>,
    /// What forwards: a program in the kernel that looks up in this program's tables, or threads of this program. The first
    /// line of the log says what `auto` chose, and why
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineName,
    /// How threads of this program receive and send frames: packet sockets, AF_XDP sockets (one worker for each receive queue;
    /// needs the feature bpf), or AF_XDP where it works. Threads forward if this is given [default: packet]
    #[arg(long, value_name = "PORT")]
    pub port: Option<PortName>,
    /// AF_XDP: make the driver poll the rings all the time instead of waiting to be woken
    #[arg(long)]
    pub no_need_wakeup: bool,
    /// AF_XDP: make workers poll the card for this many microseconds at a time, in place of interrupts
    #[arg(long, value_name = "MICROSECONDS")]
    pub busy_poll: Option<u32>,
    /// Receive buffer, in bytes, for changes that the kernel reports faster than the router applies them
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub netlink_buffer: usize,
    /// Forward past rules of this host that forwarded packets then do not meet: nftables, iptables, IPsec policies, tc. Without
    /// this flag the router does not start where there are any
    #[arg(long)]
    pub bypass_filters: bool,
    /// Forward only what the rules of this file pass, by threads; the kernel forwards nothing between the interfaces then
    #[arg(long, value_name = "FILE")]
    pub filter: Option<PathBuf>,
    /// The language of the rules
    #[arg(long, value_name = "LANGUAGE", default_value = "pf", requires = "filter")]
    pub filter_language: FilterLanguage,
    /// Take the place of the running router with the same control socket, which ends: programs in the kernel change without a lost
    /// packet. If none runs, just start
    #[arg(long, conflicts_with = "read")]
    pub takeover: bool,
    /// How much to write to standard error
    #[arg(long, value_name = "LEVEL", default_value = "notice")]
    pub log_level: LogLevel,
    /// Write only what needs attention: --log-level warning
    #[arg(long, short, conflicts_with = "log_level")]
    pub quiet: bool,
    /// Wait for interfaces that do not exist yet
    #[arg(long)]
    pub wait: bool,
    /// Number of threads that forward
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// The routing table
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Capture file with the packets that arrive
    #[arg(long, value_name = "PCAP", requires_all = ["table", "write"], conflicts_with_all = OF_A_RUNNING_ROUTER)]
    pub read: Option<PathBuf>,
    /// Capture file for the packets that leave
    #[arg(long, value_name = "PCAP")]
    pub write: Option<PathBuf>,
    /// The lookup algorithm; a family that does not have it uses auto
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub algorithm: String,
    /// The preferences that auto chooses by: a file of `fullview table calibrate` [default: FreeBSD's guesses]
    #[arg(long, value_name = "FILE")]
    pub preferences: Option<PathBuf>,
    /// The router's Ethernet address: frames to other addresses are dropped
    #[arg(long, value_name = "MAC", value_parser = station, default_value = "02:00:00:00:00:02")]
    pub mac: Mac,
    /// Addresses of the router's interface where packets arrive: it answers ARP, neighbour discovery and echo for them, and sends
    /// ICMP errors
    #[arg(long, value_name = "ADDRESS/LENGTH", value_parser = interface_address)]
    #[arg(conflicts_with_all = ["algorithm", "preferences"])]
    pub address: Vec<InterfaceAddress>,
    /// Print the counters as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub operations: OperationsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fullview generate --model netbenches --flows 5000 --packets 5000 --write flows.pcap
  fullview generate --size imix --packets 12000 --write imix.pcap")]
pub struct GenerateArgs {
    /// Address family of the packets
    #[arg(long, value_name = "FAMILY", default_value = "inet")]
    pub family: FamilyName,
    /// How destinations are chosen
    #[arg(long, value_name = "MODEL", default_value = "netbenches")]
    pub model: ModelName,
    /// Number of flows, unless ranges have one [default: 5000]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub flows: Option<usize>,
    /// Sources of the model ranges, as pkt-gen's -s: 198.18.10.1:2000-198.18.10.20
    #[arg(long, value_name = "RANGE")]
    pub source: Option<String>,
    /// Destinations of the model ranges, as pkt-gen's -d
    #[arg(long, value_name = "RANGE")]
    pub destination: Option<String>,
    /// Number of packets to write
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub packets: usize,
    /// Frame size in bytes without FCS; `smallest`: as short as UDP can be, 60 bytes for IPv4 and 62 for IPv6; `imix`:
    /// the simple IMIX, of every 12 frames 7 of the smallest, 4 of 590 bytes and one of 1,514
    #[arg(long, value_name = "SIZE", default_value = "smallest")]
    pub size: Size,
    /// The table from which destinations are chosen (models prefixes and zipf)
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// The same seed gives the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The capture file
    #[arg(long, value_name = "PCAP")]
    pub write: PathBuf,
}

/// The Ethernet address of one station.
fn station(text: &str) -> Result<Mac, String> {
    let mac: Mac = text.parse().map_err(|error: MacParseError| error.to_string())?;
    let is_station = !mac.is_group() && mac != Mac::default();
    if is_station { Ok(mac) } else { Err(format!("{mac} is not a station's address")) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyName {
    /// IPv4
    Inet,
    /// IPv6
    Inet6,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview ministat -s -w 74 before.pps after.pps")]
pub struct MinistatArgs {
    /// The options of FreeBSD's ministat: [-Ans] [-C column] [-c confidence] [-d delimiters] [-w width] [file ...]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<std::ffi::OsString>,
}
