//! The command line as typed.

use std::path::PathBuf;

pub mod operations;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use fullview_router::options::{EngineName, PortName, interface_address};

use fullview_bench::settings::{ModelName, Size};
use operations::{CaptureDropsArgs, CheckConfigArgs, OperationsArgs, ReloadArgs, ShowRouterArgs, TraceArgs};

/// A software router with pluggable route lookup, and the lab that proves what a change does to its forwarding rate.
#[derive(Debug, Parser)]
#[command(name = "fullview", version, about, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes:
  0    done
  1    it could not be done: the message says why
  2    wrong arguments or bad input: the message names the file, the line and the mend
  3    measured, but with too few valid runs to judge every comparison
  4    with --gate: some variant is worse than its baseline
  130  interrupted; what was measured is kept, --resume goes on

Examples:
  fullview bench experiments/full-view.toml
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
    /// Load, convert, check or make routing tables
    #[command(subcommand)]
    Table(TableCommand),
    /// Forward packets between interfaces of this host, or from a capture file into another
    Forward(Box<ForwardArgs>),
    /// Ask a running router what it has and what it does
    Show(ShowRouterArgs),
    /// Tell stage by stage what becomes of packets, in a running router or by a table
    Trace(TraceArgs),
    /// Have a running router's dropped packets written to a file, with the reasons
    CaptureDrops(CaptureDropsArgs),
    /// Have a running router read its configuration file again
    Reload(ReloadArgs),
    /// Check a configuration file of `forward --config`
    CheckConfig(CheckConfigArgs),
    /// Write generated traffic to a capture file
    Generate(GenerateArgs),
    /// Compare sets of numbers: a drop-in for FreeBSD's ministat (its own options; see ministat -h)
    #[command(disable_help_flag = true)]
    Ministat(MinistatArgs),
    /// Print the completion script of a shell
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fullview bench experiments/full-view.toml
  fullview bench experiments/full-view-spread.toml --table view.txt.gz --runs 10
  fullview bench experiments/full-view.toml --resume")]
pub struct BenchArgs {
    /// The experiment file
    pub experiment: PathBuf,
    /// Results folder [default: results/ and the file's name]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Runs of every variant and family, instead of the file's
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    /// Seconds that count in every run, instead of the file's
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Seed of the order and of all traffic, instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Routes from this file (text or MRT, compressed or not) instead of the experiment's table
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Go on with an interrupted campaign in the results folder
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Throw away what the results folder holds
    #[arg(long)]
    pub force: bool,
    /// Exit with 4 when a variant is worse than its baseline
    #[arg(long)]
    pub gate: bool,
    /// Only show that the experiment works: one short run each, small tables. Its figures mean nothing
    #[arg(long)]
    pub smoke: bool,
    /// Print the report's data as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The results folder
    pub folder: PathBuf,
    /// Print the report's data as JSON and write nothing
    #[arg(long)]
    pub json: bool,
    /// Print one table of all medians and write nothing; counters named here, separated by commas, are its last columns
    #[arg(long, value_name = "COUNTERS", num_args = 0..=1, default_missing_value = "", conflicts_with = "json")]
    pub overview: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Print what a table holds
    Show(ShowArgs),
    /// Turn a table of any format into another
    Convert(ConvertArgs),
    /// Compile a table with every algorithm and compare their answers with the table itself
    Verify(VerifyArgs),
    /// Make a table that looks like a real one to a lookup structure
    Synthesize(SynthesizeArgs),
    /// Measure every algorithm over tables of growing size on this machine, and write the preferences that follow
    Calibrate(CalibrateArgs),
}

#[derive(Debug, Args)]
pub struct Feed {
    /// A table: text (one prefix a line, optional next hop) or MRT; plain, gzip, bzip2 or zstd
    pub file: PathBuf,
    /// Different next hops given to routes that name none
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub next_hops: u16,
    /// Seed of those next hops
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub feed: Feed,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub feed: Feed,
    /// What to write
    #[arg(long, value_name = "FORMAT")]
    pub to: Format,
    /// What next hops that are mere numbers become where an address is needed
    #[arg(long, value_name = "WHAT", default_value = "blackhole")]
    pub numbers: NumbersAs,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Static routes for BIRD 2
    Bird,
    /// Lines for `ip -batch`
    Ip,
    /// One prefix a line with its next hop
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NumbersAs {
    /// Black holes, which load on any machine
    Blackhole,
    /// Addresses of 198.18.0.0/15 and 2001:2::/48, which need an interface in these networks
    TestAddresses,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub feed: Feed,
    /// Only this algorithm, however long it takes
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview table synthesize --inet 100000 --inet6 20000 --output view.txt")]
pub struct SynthesizeArgs {
    /// IPv4 routes
    #[arg(long, value_name = "N", default_value_t = 712_793)]
    pub inet: usize,
    /// IPv6 routes
    #[arg(long, value_name = "N", default_value_t = 104_034)]
    pub inet6: usize,
    /// Different next hops
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub next_hops: u16,
    /// The same seed gives the same table
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "An experiment uses the file with router.preferences = \"preferences.toml\".

Example:
  fullview table calibrate --output preferences.toml")]
pub struct CalibrateArgs {
    /// Only show that it works: small tables, short. The figures mean nothing
    #[arg(long, visible_alias = "quick")]
    pub smoke: bool,
    /// Where the preferences go
    #[arg(long, short, value_name = "FILE", default_value = "preferences.toml")]
    pub output: PathBuf,
}

/// Options of `forward` that mean nothing to a capture, and that a configuration has for itself.
const OF_A_RUNNING_ROUTER: [&str; 14] = [
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

/// Others that mean nothing where a configuration says everything.
const BESIDE_A_FILE: [&str; 6] = ["table", "write", "algorithm", "preferences", "mac", "address"];

#[derive(Debug, Args)]
#[command(
    after_help = "With --interfaces the kernel says what there is: links, addresses, neighbours, routes; `ip`, BIRD and FRR
work as they are. Ctrl-C, SIGINT or SIGTERM ends it, and the counters are printed.

Exit codes:
  0    ended when it was asked to, or at the end of the capture
  1    it could not go on: the message names the interface and says why
  2    wrong arguments, or a host that is not set up for it: the message says how to mend that

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
    /// Forward as this file says; it is read again at SIGHUP and `fullview reload`
    #[arg(long, value_name = "FILE", conflicts_with_all = BESIDE_A_FILE, conflicts_with_all = OF_A_RUNNING_ROUTER)]
    pub config: Option<PathBuf>,
    /// What forwards: threads of this program, or an XDP program in the kernel that looks up in this program's tables;
    /// `xdp-generic` for interfaces whose driver has no XDP of its own
    #[arg(long, value_name = "ENGINE", default_value = "user")]
    pub engine: EngineName,
    /// How threads of this program get at frames: packet sockets, AF_XDP sockets (one worker for each receive queue;
    /// needs the feature bpf), or AF_XDP where it works
    #[arg(long, value_name = "PORT", default_value = "packet")]
    pub port: PortName,
    /// AF_XDP: have the driver look at the rings all the time instead of being woken up
    #[arg(long)]
    pub no_need_wakeup: bool,
    /// AF_XDP: have workers poll the card so many microseconds a look, in place of interrupts
    #[arg(long, value_name = "MICROSECONDS")]
    pub busy_poll: Option<u32>,
    /// Bytes for changes that the kernel tells of faster than they are taken in
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub netlink_buffer: usize,
    /// Threads that forward
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// The routing table
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Packets that arrive
    #[arg(long, value_name = "PCAP", requires_all = ["table", "write"], conflicts_with_all = OF_A_RUNNING_ROUTER)]
    pub read: Option<PathBuf>,
    /// Packets that leave
    #[arg(long, value_name = "PCAP")]
    pub write: Option<PathBuf>,
    /// The lookup algorithm; a family that does not have it uses auto
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub algorithm: String,
    /// By which auto chooses: a file of `fullview table calibrate` [default: FreeBSD's guesses]
    #[arg(long, value_name = "FILE")]
    pub preferences: Option<PathBuf>,
    /// The router's Ethernet address: frames to other stations are dropped
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02")]
    pub mac: Mac,
    /// Addresses the router has where packets arrive: it answers ARP, neighbour discovery and echo for them, and sends
    /// ICMP errors
    #[arg(long, value_name = "ADDRESS/LENGTH", value_parser = interface_address)]
    #[arg(conflicts_with_all = ["algorithm", "preferences"])]
    pub address: Vec<InterfaceAddress>,
    /// Counters as JSON
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
    /// IPv4 or IPv6
    #[arg(long, value_name = "FAMILY", default_value = "inet")]
    pub family: FamilyName,
    /// How destinations are drawn
    #[arg(long, value_name = "MODEL", default_value = "netbenches")]
    pub model: ModelName,
    /// Flows
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub flows: usize,
    /// Sources of the model ranges, as pkt-gen's -s: 198.18.10.1:2000-198.18.10.20
    #[arg(long, value_name = "RANGE")]
    pub source: Option<String>,
    /// Destinations of the model ranges, as pkt-gen's -d
    #[arg(long, value_name = "RANGE")]
    pub destination: Option<String>,
    /// Packets to write
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub packets: usize,
    /// Frame size in bytes without FCS; `smallest`: as short as UDP can be, 60 bytes for IPv4 and 62 for IPv6; `imix`:
    /// the simple IMIX, of every 12 frames 7 of the smallest, 4 of 590 bytes and one of 1,514
    #[arg(long, value_name = "SIZE", default_value = "smallest")]
    pub size: Size,
    /// The table destinations are drawn from (models prefixes and zipf)
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// The same seed gives the same packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where to
    #[arg(long, value_name = "PCAP")]
    pub write: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyName {
    /// IPv4
    Inet,
    /// IPv6
    Inet6,
}

#[derive(Debug, Args)]
pub struct MinistatArgs {
    /// As FreeBSD's: [-Ans] [-C column] [-c confidence] [-d delimiters] [-w width] [file ...]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<std::ffi::OsString>,
}
