//! The log lines of the subjects.

use std::collections::BTreeSet;

use super::super::results::Results;
use super::syntax::fenced;

/// The title that the published reports use.
const LOG_TITLE: &str = "System displaying this message during route table loading:";

/// Lists the log lines of each variant once, in the order of the experiment's variants and families. Lines that differ
/// only in their time count as equal.
pub(super) fn log(results: &Results) -> String {
    let (variants, families) = (&results.campaign.experiment.variants, &results.campaign.experiment.families);
    let cells = variants.iter().flat_map(|variant| families.iter().map(move |family| (variant, family)));
    let of_variants = cells.flat_map(|(variant, family)| {
        let logged = results.campaign.events(&variant.name, &family.name).into_iter();
        logged.map(move |event| (variant.name.as_str(), event))
    });
    let of_beds =
        results.campaign.records().flat_map(|record| &record.bed.events).map(|event| ("bed", event));
    let mut seen = BTreeSet::new();
    let once =
        of_variants.chain(of_beds).filter(|(variant, event)| seen.insert((*variant, without_time(event))));
    let text: String = once.map(|(variant, event)| format!("{variant}: {event}\n")).collect();
    if text.is_empty() { text } else { format!("{LOG_TITLE}\n{}", fenced(&text)) }
}

/// Removes the time in brackets from the beginning of a log line.
fn without_time(line: &str) -> &str {
    let timed = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    timed.filter(|(time, _)| time.parse::<f64>().is_ok()).map_or(line, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::without_time;

    #[test]
    fn only_a_time_at_the_beginning_is_removed() {
        assert_eq!(without_time("[0.120000] [fib_algo] inet.0"), "[fib_algo] inet.0");
        for line in ["[fib_algo] inet.0", "[] x", "[1.5]", "plain"] {
            assert_eq!(without_time(line), line);
        }
    }
}
