//! The command line of `fullview rates`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fullview_bench::rates::{DeviceCommand, DeviceName, sizes};
use fullview_bench::traffic::frame::FrameSize;
use fullview_table::Family;

#[derive(Debug, Args)]
#[command(
    after_help = "Each device forwards UDP packets between two network namespaces, or with --testbed between hosts \
(docs/reference/testbed.md). A search (MLRsearch) finds the highest load without loss (NDR), that with a loss \
of 0.5 % (PDR), and what comes out of the largest load (MRR). Needs root, iproute2, ethtool, chrt, and nft or \
iptables for the devices with rules. What is comparable: docs/reference/rates.md.

Exit codes:
  0    measured
  1    it could not be done: the message says why
  2    wrong arguments or bad input
  3    measured, but some search has no result, or with --profile some profile is not valid:
       README.md in the folder says why
  130  interrupted; README.md has what was finished, and --resume goes on

Examples:
  fullview rates
  fullview rates --quick --out results/quick
  fullview rates --devices kernel,xdp --repetitions 5 --out results/xdp-rates
  fullview rates --devices kernel,xdp --size imix --out results/imix
  fullview rates --devices kernel,xdp --family inet6 --latency --out results/inet6
  fullview rates --devices kernel,auto --latency --out results/latency
  fullview rates --devices kernel,xdp --profile --out results/profiles
  fullview rates --devices link,off --trial-seconds 0.1 --json
  fullview rates --devices kernel-stateful,kernel-iptables,kernel-flowtable,fib-lookup --out results/kernels
  fullview rates --devices kernel,threads --bursts --out results/bursts
  fullview rates --devices kernel,threads,xdp --routes 900000 --changes 1000 --out results/full-view
  fullview rates --devices kernel,threads,tc,xdp --convergence --out results/failures
  fullview rates --devices kernel,xdp --routes 100000 --changes 1000 --convergence=20 --out results/failures
  fullview rates --devices kernel --command 'mine=./forwarder \"$INGRESS\" \"$EGRESS\"' --out results/mine
  fullview rates --testbed lab.toml --trial-seconds 1 --out results/lab
  fullview rates --testbed two-hosts.toml --latency --out results/lab-latency
  fullview rates --testbed two-hosts.toml --quick --out results/lab-quick
  fullview rates --testbed lab.toml --trial-seconds 1 --out results/lab --resume"
)]
pub struct RatesArgs {
    /// What is measured: link, kernel, kernel-stateful, kernel-iptables, kernel-flowtable, fib-lookup, off, auto, threads,
    /// threads-xdp, tc, xdp, xdp-generic, or the devices of the inventory [default: link, kernel, kernel-stateful, auto, threads, tc, xdp,
    /// xdp-generic, or all of the inventory]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Measure this program too: a line for sh that forwards from $INGRESS to $EGRESS; may be given more than once
    #[arg(long, value_name = "NAME=COMMAND", value_parser = command, conflicts_with = "testbed")]
    pub command: Vec<DeviceCommand>,
    /// Measure between the hosts of this inventory instead, over ssh
    #[arg(long, value_name = "FILE")]
    pub testbed: Option<PathBuf>,
    /// The kernel and auto with latency and profiles in less than three minutes; sets the defaults of --devices, --repetitions,
    /// --trial-seconds and --most-seconds to kernel,auto (all of an inventory), 1, 0.05
    /// and 30
    #[arg(long)]
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
    /// Send packets of IPv4 or IPv6 between namespaces; between hosts the inventory says it
    #[arg(long, value_name = "FAMILY", default_value = "inet", value_parser = family, conflicts_with = "testbed")]
    pub family: Family,
    /// Bytes of each packet's frame without the FCS, 60 (IPv6: 74) to 1514, or imix: 7 of the smallest, 4 of 590 and 1 of 1514 in
    /// turn [default: the smallest]
    #[arg(long, value_name = "BYTES|imix", value_parser = size)]
    pub size: Option<FrameSize>,
    /// Measure one-way latency too, at 10, 50 and 90 % of the PDR and at the largest load
    #[arg(long)]
    pub latency: bool,
    /// Find the longest burst at the largest load without loss, too, and the buffer that it implies (RFC 9004)
    #[arg(long)]
    pub bursts: bool,
    /// Profile each device's core after the rates, by perf (Debian: linux-perf): flame graphs, and where the time goes
    #[arg(long)]
    pub profile: bool,
    /// Load so many synthetic routes into the device's kernel first, and send to all of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=2_000_000))]
    pub routes: Option<u32>,
    /// Change so many of the routes a second while the device is measured
    #[arg(long, value_name = "M", default_value_t = 0, requires = "routes", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub changes: u32,
    /// Change them as the first 100,000 updates of the family in this trace do (lines: unix-time a|w prefix next-hop), again and again
    #[arg(long, value_name = "FILE", requires = "changes")]
    pub trace: Option<PathBuf>,
    /// Have the link and the route by which each device sends fail N times, and measure how long packets are lost
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub convergence: Option<u32>,
    /// Seed of the order of the devices, and of the routes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Folder for the page, the data and all trials
    #[arg(long, value_name = "FOLDER", default_value = "results/rates")]
    pub out: PathBuf,
    /// Replace what the folder holds
    #[arg(long)]
    pub force: bool,
    /// Go on with the campaign in the folder, which was interrupted or killed; with the same options
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// How long a lost host of the inventory may be away until it is given up
    #[arg(long, value_name = "S", default_value_t = 300, requires = "testbed")]
    pub patience: u64,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

fn family(text: &str) -> Result<Family, String> {
    Family::named(text).ok_or_else(|| "give inet or inet6".to_owned())
}

fn size(text: &str) -> Result<FrameSize, String> {
    if text == "imix" {
        return Ok(FrameSize::Imix);
    }
    let all = sizes(Family::Inet);
    let bytes = text.parse().ok().filter(|bytes| all.contains(bytes));
    let (least, most) = (all.start(), all.end());
    bytes.map(FrameSize::Bytes).ok_or_else(|| format!("give bytes from {least} to {most}, or imix"))
}

fn command(text: &str) -> Result<DeviceCommand, String> {
    let (name, line) = text.split_once('=').ok_or("give a name and a command, as in mine=./forwarder")?;
    let is_word =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_word(name) || line.trim().is_empty() {
        return Err("the name has letters, digits and -_. only, and a command follows it".into());
    }
    if DeviceName::from_str(name, false).is_ok() {
        return Err(format!("{name} is a device of this program: give another name"));
    }
    Ok(DeviceCommand { name: name.into(), line: line.into() })
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |seconds: &f64| (0.01..=3600.0).contains(seconds);
    text.parse().ok().filter(fits).ok_or_else(|| "give seconds from 0.01 to 3600".to_owned())
}
