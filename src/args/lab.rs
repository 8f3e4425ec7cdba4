//! The arguments of the commands that measure and compare.

use std::path::PathBuf;

use clap::Args;
use fullview_lab::Runs;

/// An experiment, and the flags that replace single values of its file.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// The experiment file
    #[arg(value_name = "FILE")]
    pub experiment: PathBuf,
    /// Seconds that each variant is measured in a block, instead of the file's
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Milliseconds of a turn that count, instead of the shortest that a calibration does not refute
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
    /// A number of blocks, or "until-decided", instead of the file's; a verdict takes at least 2, and 10 are better
    #[arg(long, value_name = "N", value_parser = runs)]
    pub runs: Option<Runs>,
    /// The most minutes until all comparisons are decided, instead of the file's; the first look is made however long it takes
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
    after_help = "With --against, this build and another one take turns in every block, each in processes of its own, and each \
variant of this build is compared with the same variant of the other.

Exit codes:
  0    measured and judged
  2    wrong arguments or bad input: the message names the file, the line and how to fix it
  3    measured, but with too few valid blocks to judge every comparison
  4    with --gate: some variant is worse than its baseline, or than the other build's (goes before 3)
  5    with --gate (goes before 3 and 4): the baseline and its copy differ, so that this machine or set-up cannot be
       trusted today; without --gate the first line of the answer says so
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
    /// Replace the campaign in the results folder; other files stay
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
  3    measured, but with too few valid blocks to tell whether a copy differs from the first one
  5    a copy differs from the first one: this machine or set-up cannot be trusted today

Example:
  fullview aa experiments/full-view.toml"
)]
pub struct AaArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Number of blocks
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub blocks: u32,
    /// Number of copies of the baseline, besides the hidden one
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub copies: u8,
    /// Results folder [default: results/, the file's name and -aa]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Replace the campaign in the results folder; other files stay
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
    after_help = "Each variant is made ready and verified alone, and sampled by perf (Debian: linux-perf) while it works for the \
seconds of the experiment's window. Rates are measured by `fullview bench`, never here.

Exit codes:
  0    profiled
  1    perf failed: the message has what it said
  2    wrong arguments or bad input
  3    profiled, but some profile is not valid: README.md in the folder says why
  130  interrupted

Examples:
  fullview profile experiments/full-view.toml
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
    after_help = "Two folders have no round in common, so that this is weaker than `fullview bench --against`; the answer says \
why.

Exit codes:
  0    compared
  2    not two results folders, or not of one question: the message says in what they differ
  3    some variant has too few valid blocks to be judged
  4    with --gate: some variant is worse in AFTER (goes before 3)
  5    with --gate (goes before 3 and 4): one of the campaigns cannot be trusted

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
#[command(after_help = "Exit codes:
  0    reported
  1    the report cannot be written: the message says why
  2    not a results folder, or a damaged one: the message names the file and the line
  3    reported, but with too few valid blocks to judge every comparison

Examples:
  fullview report results/full-view
  fullview report results/peers --overview structure_bytes,build_ms")]
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
  1    the report cannot be written: the message says why
  2    no series of runs can be read: the message says why

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
    /// Replace files of the same names in the folder
    #[arg(long)]
    pub force: bool,
    /// The rates as they were measured, not at the median machine speed
    #[arg(long)]
    pub raw: bool,
}
