//! Drives a search with a measurer.

use super::config::SearchConfig;
use super::controller::MlrSearch;
use super::error::SearchError;
use super::result::SearchResults;
use super::trial::Measurer;

/// Makes trials until every goal is reached, or until they have taken `most_seconds` together. The results are then those
/// of a search that was stopped.
pub fn search<M: Measurer>(
    config: SearchConfig,
    measurer: &mut M,
    most_seconds: f64,
) -> Result<SearchResults, SearchError> {
    let (mut search, mut taken) = (MlrSearch::new(config)?, 0.0);
    while let Some(request) = search.request().filter(|_| taken < most_seconds) {
        let failed = |source: M::Error| SearchError::Trial {
            load: request.load,
            duration: request.duration,
            source: Box::new(source),
        };
        let result = measurer.measure(request).map_err(failed)?;
        taken += result.effective_duration;
        search.record(result)?;
    }
    Ok(search.results())
}
