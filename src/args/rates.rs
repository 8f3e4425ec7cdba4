//! The command line of `fullview rates`.

use std::path::PathBuf;

use clap::Args;
use fullview_bench::rates::SIZES;
use fullview_bench::traffic::frame::FrameSize;

#[derive(Debug, Args)]
#[command(
    after_help = "Each device forwards UDP packets between two network namespaces, or with --testbed between hosts
(docs/reference/testbed.md). A search (MLRsearch) finds the highest load
without loss (NDR), that with a loss of 0.5 % (PDR), and what comes out of the largest load (MRR). Needs root, iproute2,
ethtool, chrt, and nft for kernel-stateful. What is comparable: docs/reference/rates.md.

Exit codes:
  0    measured
  1    it could not be done: the message says why
  2    wrong arguments or bad input
  3    measured, but some search has no result: README.md in the folder says why
  130  interrupted; README.md has what was finished

Examples:
  fullview rates
  fullview rates --quick --out results/quick
  fullview rates --devices kernel,xdp --repetitions 5 --out results/xdp-rates
  fullview rates --devices kernel,xdp --size imix --out results/imix
  fullview rates --devices kernel,auto --latency --out results/latency
  fullview rates --devices link,off --trial-seconds 0.1 --json
  fullview rates --testbed lab.toml --trial-seconds 1 --out results/lab"
)]
pub struct RatesArgs {
    /// What is measured: link, kernel, kernel-stateful, off, auto, threads, tc, xdp, xdp-generic, or the devices of the
    /// inventory [default: all but off]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Measure between the hosts of this inventory instead, over ssh
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// The kernel and auto with latency in less than three minutes; sets the defaults of --devices, --repetitions,
    /// --trial-seconds and --most-seconds to kernel,auto, 1, 0.05 and 30
    #[arg(long, conflicts_with = "testbed")]
    pub quick: bool,
    /// Searches for each device
    #[arg(long, value_name = "N", default_value_t = 3, default_value_if("quick", "true", "1"), value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Seconds of a trial; a load is decided by 21 of them
    #[arg(long, value_name = "S", default_value_t = 0.2, default_value_if("quick", "true", "0.05"), value_parser = seconds)]
    pub trial_seconds: f64,
    /// The most seconds of trials in one search
    #[arg(long, value_name = "S", default_value_t = 120.0, default_value_if("quick", "true", "30"), value_parser = seconds)]
    pub most_seconds: f64,
    /// Offer no more packets a second than this [default: as many as the generator holds]
    #[arg(long, value_name = "PPS", value_parser = clap::value_parser!(u32).range(2000..))]
    pub most_load: Option<u32>,
    /// Bytes of each packet's frame without the FCS, 60 to 1514, or imix: 7 of 60, 4 of 590 and 1 of 1514 in turn
    #[arg(long, value_name = "BYTES|imix", default_value = "60", value_parser = size, conflicts_with = "testbed")]
    pub size: FrameSize,
    /// Measure one-way latency too, at 10, 50 and 90 % of the PDR and at the largest load
    #[arg(long, conflicts_with = "testbed")]
    pub latency: bool,
    /// Seed of the order of the devices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Folder for the page, the data and all trials
    #[arg(long, value_name = "FOLDER", default_value = "results/rates")]
    pub out: PathBuf,
    /// Replace what the folder holds
    #[arg(long)]
    pub force: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

fn size(text: &str) -> Result<FrameSize, String> {
    if text == "imix" {
        return Ok(FrameSize::Imix);
    }
    let bytes = text.parse().ok().filter(|bytes| SIZES.contains(bytes));
    let (least, most) = (SIZES.start(), SIZES.end());
    bytes.map(FrameSize::Bytes).ok_or_else(|| format!("give bytes from {least} to {most}, or imix"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |seconds: &f64| (0.01..=3600.0).contains(seconds);
    text.parse().ok().filter(fits).ok_or_else(|| "give seconds from 0.01 to 3600".to_owned())
}
