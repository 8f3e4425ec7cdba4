//! Rule sets of packet filters, compiled for the interfaces of a router.

use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::ipfw::{IpfwConfig, IpfwError};
use fullview_filter::pf::error::PfError;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use fullview_filter::pf::{load, lower};
use fullview_filter::ruleset::{CompileError, RuleSet};
use fullview_filter::state::WorkerLimits;
use fullview_plane::forward::{BurstFilter, UnsupportedFilter};
use fullview_plane::interface::Interface;
use serde::{Deserialize, Serialize};

/// The language of a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterLanguage {
    /// That of FreeBSD's pf.conf(5).
    Pf,
    /// That of FreeBSD's ipfw(8).
    Ipfw,
}

/// States that a filter has room for at most: 2 GiB.
pub const MOST_STATES: u32 = 1 << 24;

/// Why rules cannot be enforced. The messages of the languages name the file, the line and the column.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error("{0}")]
    Pf(#[from] PfError),
    #[error("{0}")]
    Ipfw(#[from] IpfwError),
    #[error("{path}: cannot read the rules of the filter: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{states} states take {} GiB; {MOST_STATES} are possible", u64::from(*states) >> 23)]
    TooManyStates { states: u32 },
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error("{0}")]
    Unsupported(#[from] UnsupportedFilter),
}

/// A rule set for a router whose interfaces have these numbers, with room for so many states or as many as the rules say.
pub fn compile(
    (language, path): (FilterLanguage, &str),
    files: &dyn RulesetFiles,
    interfaces: &[Interface],
    states: Option<u32>,
    seed: u64,
) -> Result<BurstFilter, FilterError> {
    let (parts, mut limits) = match language {
        FilterLanguage::Pf => {
            let lowered = lower::lower(&load::load(path, files, &facts(interfaces))?, &numbered(interfaces))?;
            (lowered.parts, lowered.limits)
        }
        FilterLanguage::Ipfw => {
            let text = files.read(path).map_err(|source| FilterError::Read { path: path.into(), source })?;
            (IpfwConfig::load(path, &text)?.lower(&numbered(interfaces)), WorkerLimits::default())
        }
    };
    limits.states = states.unwrap_or(limits.states);
    if limits.states > MOST_STATES {
        return Err(FilterError::TooManyStates { states: limits.states });
    }
    Ok(BurstFilter::new(RuleSet::new(parts)?.into(), limits, seed)?)
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
