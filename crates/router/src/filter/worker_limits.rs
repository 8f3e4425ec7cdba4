//! Rules that only one worker enforces.

use fullview_filter::ipfw::{IpfwConfig, first_rule as ipfw};
use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::first_rule::{first_limit, first_translation};
use fullview_filter::pf::rule::PfRule;

/// A rule that several workers cannot enforce together, and where it stands.
#[derive(Debug, thiserror::Error)]
pub enum SeveralWorkersError {
    #[error(
        "{place}: with several workers no addresses are translated, as the answers may come to another worker than the one that \
         has the state: remove the rule, or choose one worker (router.workers, --workers)"
    )]
    Translation { place: String },
    #[error(
        "{place}: several workers do not count together, so none of them can limit states or sources: remove the limit, or \
         choose one worker (router.workers, --workers)"
    )]
    Limit { place: String },
}

pub fn check_pf(workers: usize, config: &PfConfig) -> Result<(), SeveralWorkersError> {
    let place = |rule: &PfRule| rule.position.to_string();
    check(workers, first_translation(config).map(place), first_limit(config).map(place))
}

pub fn check_ipfw(workers: usize, path: &str, config: &IpfwConfig) -> Result<(), SeveralWorkersError> {
    let place = |number| format!("{path}: rule {number}");
    check(workers, ipfw::first_translation(config).map(place), ipfw::first_limit(config).map(place))
}

fn check(
    workers: usize,
    translation: Option<String>,
    limit: Option<String>,
) -> Result<(), SeveralWorkersError> {
    match (translation, limit) {
        _ if workers == 1 => Ok(()),
        (Some(place), _) => Err(SeveralWorkersError::Translation { place }),
        (None, Some(place)) => Err(SeveralWorkersError::Limit { place }),
        (None, None) => Ok(()),
    }
}
