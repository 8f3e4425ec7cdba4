//! The command line, except for the flags that concern a running router.

use std::path::PathBuf;

mod filter;
pub mod operations;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod rates;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod testbed;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;
use fullview_router::log::LogLevel;
use fullview_router::options::{EngineName, PortName, interface_address};

pub use filter::{ExplainedProtocol, FilterCheckArgs, FilterCommand, FilterExplainArgs, RulesLanguage};
use fullview_bench::settings::{ModelName, Size};
use fullview_lab::Runs;
use operations::{CaptureDropsArgs, CheckConfigArgs, OperationsArgs, ReloadArgs, ShowRouterArgs, TraceArgs};

/// A software router with pluggable route lookup, and the lab that proves what a change does to its forwarding rate.
#[derive(Debug, Parser)]
#[command(name = "fullview", version, about, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes:
  0    done
  1    it could not be done: the message says why
  2    wrong arguments or bad input: the message names the file, the line and how to fix it
  3    measured, but with too few valid blocks to judge every comparison
  4    with --gate: some variant is worse than its baseline
  5    with --gate: the baseline and its copy differ, so that this machine or set-up cannot be trusted today
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
    #[command(subcommand)]
    Table(TableCommand),
    /// Check rule sets of packet filters
    #[command(subcommand)]
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
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

/// An experiment, and the flags that replace single values of its file.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// The experiment file
    #[arg(value_name = "FILE")]
    pub experiment: PathBuf,
    /// Seconds that each variant is measured in a block, instead of the file's
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Milliseconds of a turn that count, instead of the shortest that a calibration finds fair
    #[arg(long, value_name = "MS")]
    pub slice_ms: Option<f64>,
    /// Seed of the order of turns and of all traffic, instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Use the routes of this file (text or MRT, compressed or not) instead of the experiment's table
    #[arg(long, value_name = "ROUTES")]
    pub table: Option<PathBuf>,
    /// Only check that the experiment works: short panels of small tables. The figures mean nothing
    #[arg(long)]
    pub smoke: bool,
}

/// How long a campaign is.
#[derive(Debug, Args)]
pub struct LengthArgs {
    /// A number of blocks, or \"until-decided\", instead of the file's
    #[arg(long, value_name = "N", value_parser = runs)]
    pub runs: Option<Runs>,
    /// The most minutes until all comparisons are decided, instead of the file's
    #[arg(long, value_name = "MIN")]
    pub minutes: Option<f64>,
}

fn runs(text: &str) -> Result<Runs, String> {
    let refused = |_| "give a number of blocks, or until-decided".to_owned();
    match text {
        "until-decided" | "until decided" => Ok(Runs::UntilDecided),
        blocks => blocks.parse().map(Runs::Blocks).map_err(refused),
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "With --against, this build and another one take turns in every block, each in processes of its own, and \
each variant of this build is compared with the same variant of the other.

Exit codes:
  0    measured and judged
  2    wrong arguments or bad input: the message names the file, the line and how to fix it
  3    measured, but with too few valid blocks to judge every comparison
  4    with --gate: some variant is worse than its baseline, or than the other build's
  5    with --gate: the baseline and its copy differ, so that this machine or set-up cannot be trusted today;
       without --gate the first line of the answer says so
  130  interrupted; what was measured is kept, --resume goes on

Examples:
  fullview bench experiments/full-view.toml
  fullview bench experiments/full-view-spread.toml --table view.txt.gz --runs 10
  fullview bench experiments/full-view.toml --against HEAD~1 --gate
  fullview bench experiments/full-view.toml --resume --minutes 30"
)]
pub struct BenchArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub length: LengthArgs,
    /// Compare this build with a commit of this repository, which is built in target/against, or with the program in a file
    #[arg(long, value_name = "REV|PROGRAM")]
    pub against: Option<String>,
    /// Keep the worktree and the program of the other commit in target/against
    #[arg(long, requires = "against")]
    pub keep: bool,
    /// Results folder [default: results/ and the file's name]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Continue the campaign in the results folder: an interrupted one, or one that is to be longer
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Delete what the results folder holds
    #[arg(long)]
    pub force: bool,
    /// Exit with 4 when a variant is worse than its baseline, and with 5 when the machine cannot be trusted
    #[arg(long)]
    pub gate: bool,
    /// Print the report's data as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The variants are replaced by copies of the baseline, so that every difference found is noise.

Exit codes:
  0    measured
  5    two copies differ: this machine or set-up cannot be trusted today

Example:
  fullview aa experiments/full-view.toml"
)]
pub struct AaArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Number of blocks
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub blocks: u32,
    /// Number of copies of the baseline, besides the hidden one
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub copies: u8,
    /// Results folder [default: results/, the file's name and -aa]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Delete what the results folder holds
    #[arg(long)]
    pub force: bool,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "What will be seen follows from the noise of this machine: that of `fullview aa` in the results folder if it \
fits, else that of three blocks measured now.

Examples:
  fullview plan experiments/full-view.toml
  fullview plan experiments/full-view.toml --minutes 30 --no-pilot"
)]
pub struct PlanArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    #[command(flatten)]
    pub length: LengthArgs,
    /// Results folder of `fullview aa` [default: results/, the file's name and -aa, if it is there]
    #[arg(long, value_name = "FOLDER")]
    pub noise: Option<PathBuf>,
    /// Measure nothing: without a folder of `fullview aa` only the size and the time are planned
    #[arg(long)]
    pub no_pilot: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each variant is made ready and verified alone, and sampled by perf (Debian: linux-perf) while it works for the
seconds of the experiment's window. Rates are measured by `fullview bench`, never here.

Exit codes:
  0    profiled
  1    perf failed: the message has what it said
  2    wrong arguments or bad input
  3    profiled, but some profile is not valid: README.md in the folder says why
  130  interrupted

Examples:
  fullview profile experiments/full-view.toml --seconds 3
  fullview profile experiments/full-view.toml --table view.txt.gz --families inet --out profile"
)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Only these families
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub families: Vec<String>,
    /// Folder for the pictures [default: results/, the file's name and -profile]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Replace the profile that the folder holds
    #[arg(long)]
    pub force: bool,
    /// Print the tables as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Two folders have no round in common, so that this is weaker than `fullview bench --against`; the answer says why.

Exit codes:
  0    compared
  2    not two results folders, or not of one question: the message says in what they differ
  3    some variant has too few valid blocks to be judged
  4    with --gate: some variant is worse in AFTER
  5    with --gate: one of the campaigns cannot be trusted

Example:
  fullview compare results/monday results/tuesday"
)]
pub struct CompareArgs {
    /// The results folder to compare with
    pub before: PathBuf,
    /// The results folder that is judged
    pub after: PathBuf,
    /// Exit with 4 when a variant is worse, and with 5 when a campaign cannot be trusted
    #[arg(long)]
    pub gate: bool,
    /// Print the comparison as JSON
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
    /// Print the ministat blocks with the rates as they were measured, not at the median machine speed, and write nothing
    #[arg(long, conflicts_with_all = ["json", "overview"])]
    pub raw: bool,
    /// Print one table of all medians and write nothing; counters named here, separated by commas, are its last columns
    #[arg(long, value_name = "COUNTERS", num_args = 0..=1, default_missing_value = "", conflicts_with = "json")]
    pub overview: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Files that are empty, cut off or of another format are named and skipped.

Exit codes:
  0    imported
  2    no series of runs can be read, or the report cannot be written: the message says why

Example:
  fullview import netbenches/Xeon/fullview/results/fbsd13 --out results/fbsd13")]
pub struct ImportArgs {
    /// The directory with README.md, .pps files and RAW
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Folder for report.md, report.json and the graph [default: results/ and the directory's name]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Replace the report in the folder
    #[arg(long)]
    pub force: bool,
    /// Print the figures as JSON and write nothing
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  fullview export results/full-view --to full-view-pps")]
pub struct ExportArgs {
    /// The results folder
    pub folder: PathBuf,
    /// Folder for VARIANT.FAMILY.pps, gnuplot.data and gnuplot.plt
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// The rates as they were measured, not at the median machine speed
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Print what a table holds
    Show(ShowArgs),
    /// Turn a table of any format into another
    Convert(ConvertArgs),
    /// Compile a table with every algorithm and compare the answers with the table itself
    Verify(VerifyArgs),
    /// Generate a table that costs lookup structures as much as a real one
    Synthesize(SynthesizeArgs),
    /// Measure every algorithm on tables of growing size on this machine, and write preferences from the results
    Calibrate(CalibrateArgs),
}

#[derive(Debug, Args)]
pub struct Feed {
    /// A table: text (one prefix a line, optional next hop) or MRT; plain, gzip, bzip2 or zstd
    pub file: PathBuf,
    /// Number of different next hops given to routes that name none
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
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub feed: Feed,
    /// Format of the output
    #[arg(long, value_name = "FORMAT")]
    pub to: Format,
    /// What replaces next hops that are only numbers where the format needs an address
    #[arg(long, value_name = "WHAT", default_value = "blackhole")]
    pub numbers: NumbersAs,
    /// Output file [default: standard output]
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
    /// Blackhole routes, which load on any machine
    Blackhole,
    /// Addresses of 198.18.0.0/15 and 2001:2::/48, which load only on a machine with an interface in these networks
    TestAddresses,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub feed: Feed,
    /// Check only this algorithm, however long it takes
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
    /// Number of different next hops
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub next_hops: u16,
    /// The same seed gives the same table
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "An experiment uses the file with router.preferences = \"preferences.toml\".

Example:
  fullview table calibrate --output preferences.toml")]
pub struct CalibrateArgs {
    /// Only check that it works: small tables, short measurements. The figures mean nothing
    #[arg(long, visible_alias = "quick")]
    pub smoke: bool,
    /// File for the preferences
    #[arg(long, short, value_name = "FILE", default_value = "preferences.toml")]
    pub output: PathBuf,
}

/// Flags of `forward` that do not apply to a capture, and whose values a configuration file has.
const OF_A_RUNNING_ROUTER: [&str; 18] = [
    "log_level",
    "quiet",
    "bypass_filters",
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
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02")]
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
    /// Number of flows
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub flows: usize,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyName {
    /// IPv4
    Inet,
    /// IPv6
    Inet6,
}

#[derive(Debug, Args)]
pub struct MinistatArgs {
    /// The options of FreeBSD's ministat: [-Ans] [-C column] [-c confidence] [-d delimiters] [-w width] [file ...]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<std::ffi::OsString>,
}
