//! Rules that only a router with a host of its own enforces.

use fullview_filter::ipfw::{IpfwConfig, first_rule as ipfw};
use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::first_rule::{first_answer, first_translation};

/// What answers for the router whose packets are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterPlace {
    /// The router's own host.
    Standalone,
    /// The kernel, which receives packets to its addresses itself.
    BesideKernel,
}

/// A rule that a router beside a kernel cannot enforce, and where it stands.
#[derive(Debug, thiserror::Error)]
pub enum BesideKernelError {
    #[error(
        "{place}: beside a kernel no addresses are translated, as the kernel receives the packets to its own addresses: remove \
         the rule, or start the router with `kernel = false`"
    )]
    Translation { place: String },
    #[error(
        "{place}: beside a kernel blocked packets are not answered: write {instead}, or start the router with `kernel = false`"
    )]
    Answer { place: String, instead: &'static str },
}

pub fn check_pf(place: FilterPlace, config: &PfConfig) -> Result<(), BesideKernelError> {
    if place == FilterPlace::Standalone {
        return Ok(());
    }
    if let Some(rule) = first_translation(config) {
        return Err(BesideKernelError::Translation { place: rule.position.to_string() });
    }
    let instead = "`block drop`, or `set block-policy drop`";
    first_answer(config)
        .map_or(Ok(()), |rule| Err(BesideKernelError::Answer { place: rule.position.to_string(), instead }))
}

pub fn check_ipfw(place: FilterPlace, path: &str, config: &IpfwConfig) -> Result<(), BesideKernelError> {
    if place == FilterPlace::Standalone {
        return Ok(());
    }
    let of_rule = |number| format!("{path}: rule {number}");
    if let Some(number) = ipfw::first_translation(config) {
        return Err(BesideKernelError::Translation { place: of_rule(number) });
    }
    let instead = "`deny`";
    ipfw::first_answer(config)
        .map_or(Ok(()), |number| Err(BesideKernelError::Answer { place: of_rule(number), instead }))
}
