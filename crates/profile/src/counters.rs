//! Events that a piece of work caused, counted by perf-stat(1).

use std::fs;

use serde::Serialize;

use crate::attached::{Attached, Observed};
use crate::error::ProfileError;

/// Those that need the processor's counters, and those that every kernel counts.
const EVENTS: [&str; 7] = [
    "cycles",
    "instructions",
    "cache-misses",
    "branch-misses",
    "page-faults",
    "context-switches",
    "cpu-migrations",
];

/// How often an event occurred.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventCount {
    /// perf's name of the event.
    pub event: String,
    /// `None` if this machine does not count it.
    pub count: Option<u64>,
}

/// Counts while `work` runs. The second value is what `work` returned.
pub fn count<T>(work: impl FnOnce() -> T) -> Result<(Vec<EventCount>, T), ProfileError> {
    let options = ["-x,", "-e", &EVENTS.join(",")];
    let mut perf = Attached::start("stat", Observed::ThisProcess, &options, &std::env::temp_dir())?;
    let (done, _) = perf.during(work)?;
    let counts = perf.end(|data| {
        let text = fs::read_to_string(data).map_err(ProfileError::file(data))?;
        Ok(parse(&text))
    })?;
    Ok((counts, done))
}

/// Every event, counted or not.
fn parse(text: &str) -> Vec<EventCount> {
    let counts: Vec<(&str, Option<u64>)> = text.lines().filter_map(line).collect();
    let count = |event| counts.iter().find(|(known, _)| *known == event).and_then(|(_, count)| *count);
    EVENTS.map(|event| EventCount { event: event.into(), count: count(event) }).into()
}

/// `COUNT,UNIT,EVENT,…`; the count is a word in `<…>` where there is none.
fn line(line: &str) -> Option<(&str, Option<u64>)> {
    let mut fields = line.split(',');
    let (count, event) = (fields.next()?, fields.nth(1)?);
    Some((event.split(':').next()?, count.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_none() {
        let text =
            "# started on Mon\n\n<not supported>,,cycles:u,0,100.00,,\n12,,page-faults,5000,100.00,,\n";
        let counted: Vec<(String, u64)> =
            parse(text).into_iter().filter_map(|one| Some((one.event, one.count?))).collect();
        assert_eq!(counted, [("page-faults".to_owned(), 12)]);
        assert_eq!((parse(text).len(), parse("").len()), (EVENTS.len(), EVENTS.len()));
    }
}
