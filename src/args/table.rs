//! The arguments of `fullview table`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
