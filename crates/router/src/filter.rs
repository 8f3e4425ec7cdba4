//! Rule sets of packet filters, compiled for the interfaces of a router.

mod kernel_limits;
mod read_files;
mod worker_limits;

use std::path::PathBuf;

use clap::ValueEnum;
use fullview_filter::interfaces::{FilterInterface, Interfaces, UnknownInterface};
use fullview_filter::ipfw::{IpfwConfig, IpfwError};
use fullview_filter::pf::error::PfError;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use fullview_filter::pf::named_interfaces::named_interfaces;
use fullview_filter::pf::{load, lower};
use fullview_filter::ruleset::{CompileError, RuleSet};
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{EnforceableRules, FilterBusy, UnsupportedFilter};
use fullview_plane::interface::Interface;
pub use kernel_limits::{BesideKernelError, FilterPlace};
pub use read_files::ReadFiles;
use read_files::RecordingFiles;
use serde::{Deserialize, Serialize};
pub use worker_limits::SeveralWorkersError;

/// The language of a rule set. The comments of the variants are help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterLanguage {
    /// That of FreeBSD's pf.conf(5)
    Pf,
    /// That of FreeBSD's ipfw(8)
    Ipfw,
}

/// States that a filter has room for at most: 2 GiB.
pub const MOST_STATES: u32 = 1 << 24;

/// Known flows that a program in the kernel forwards, unless the configuration says how many.
pub const KERNEL_FLOWS: u16 = 1 << 15;

/// Why rules cannot be enforced. The messages of the languages name the file, the line and the column.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("{0}")]
    Pf(#[from] PfError),
    #[error("{0}")]
    Ipfw(#[from] IpfwError),
    #[error("{path}: cannot read the rules of the filter: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("filter.states: {states} states take {} GiB; {MOST_STATES} are possible", u64::from(*states) >> 23)]
    TooManyStates { states: u32 },
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error("{0}")]
    Unsupported(#[from] UnsupportedFilter),
    #[error(
        "{path}: the limits of states, sources and fragments (set limit) cannot change while the router runs; restart it or \
         undo that"
    )]
    OtherLimits { path: String },
    #[error("{0}")]
    Busy(#[from] FilterBusy),
    #[error(transparent)]
    BesideKernel(#[from] BesideKernelError),
    #[error(transparent)]
    SeveralWorkers(#[from] SeveralWorkersError),
}

/// A rule set that a router may enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterOptions {
    pub place: FilterPlace,
    /// The workers that enforce it.
    pub workers: usize,
    pub language: FilterLanguage,
    pub file: PathBuf,
    /// Room for states, instead of what the rules say.
    pub states: Option<u32>,
    /// Known flows whose packets a program in the kernel forwards at most, in a router beside a kernel.
    pub kernel_flows: u16,
}

/// What rules were made from, to make them again for other interfaces without a look at files that may have changed.
#[derive(Debug, Clone)]
pub struct FilterSources {
    pub options: FilterOptions,
    pub files: ReadFiles,
}

/// Rules for a router's worker, and how much it remembers.
pub struct CompiledFilter {
    pub rules: EnforceableRules,
    pub limits: WorkerLimits,
    /// The file of the rules.
    pub path: String,
    /// What the rules were made from.
    pub sources: FilterSources,
    /// Names in the rules that stand for no interface.
    pub unknown: Vec<UnknownInterface>,
}

/// Compiles the rules of a router whose interfaces have these numbers.
pub fn compile(
    options: &FilterOptions,
    files: &dyn RulesetFiles,
    interfaces: &[Interface],
) -> Result<CompiledFilter, FilterError> {
    compile_after(None, options, files, interfaces)
}

/// Compiles rules that replace those in force: tables that they leave open keep their addresses.
pub fn compile_after(
    in_force: Option<&EnforceableRules>,
    options: &FilterOptions,
    files: &dyn RulesetFiles,
    interfaces: &[Interface],
) -> Result<CompiledFilter, FilterError> {
    let files = &RecordingFiles::new(files);
    let path = options.file.to_string_lossy().into_owned();
    let numbered = numbered(interfaces);
    let (mut parts, mut limits, unknown) = match options.language {
        FilterLanguage::Pf => {
            let config = load::load(&path, files, &facts(interfaces))?;
            kernel_limits::check_pf(options.place, &config)?;
            worker_limits::check_pf(options.workers, &config)?;
            let lowered = lower::lower_for(&config, &numbered, options.states)?;
            (lowered.parts, lowered.limits, numbered.unknown(named_interfaces(&config)))
        }
        FilterLanguage::Ipfw => {
            let unreadable = |source| FilterError::Read { path: path.clone(), source };
            let text = files.read(&path).map_err(unreadable)?;
            let config = IpfwConfig::load(&path, &text)?;
            kernel_limits::check_ipfw(options.place, &path, &config)?;
            worker_limits::check_ipfw(options.workers, &path, &config)?;
            let at = |(number, name)| (format!("{path}: rule {number}"), name);
            let unknown = numbered.unknown(config.named_interfaces().map(at));
            (config.lower(&numbered), WorkerLimits::default(), unknown)
        }
    };
    limits.states = options.states.unwrap_or(limits.states);
    if limits.states > MOST_STATES {
        return Err(FilterError::TooManyStates { states: limits.states });
    }
    in_force.into_iter().for_each(|before| parts.keep_tables(before.rules()));
    let sources = FilterSources { options: options.clone(), files: files.read_files() };
    let rules = EnforceableRules::new(RuleSet::new(parts)?)?;
    Ok(CompiledFilter { rules, limits, path, sources, unknown })
}

fn facts(interfaces: &[Interface]) -> HostFacts {
    let interface = |interface: &Interface| HostInterface {
        name: interface.name.clone(),
        addresses: interface.addresses.iter().map(|own| address(own.ip, own.len)).collect(),
        ..HostInterface::default()
    };
    HostFacts { interfaces: interfaces.iter().map(interface).collect() }
}

fn address(address: std::net::IpAddr, length: u8) -> HostAddress {
    HostAddress { address, length, broadcast: None, peer: None }
}

fn numbered(interfaces: &[Interface]) -> Interfaces {
    let interface = |(number, interface): (u16, &Interface)| FilterInterface {
        name: interface.name.clone(),
        number,
        groups: Vec::new(),
        addresses: interface.addresses.iter().map(|own| (own.ip.into(), own.len)).collect(),
    };
    Interfaces((0..).zip(interfaces).map(interface).collect())
}
