//! The opening of the report: title, conditions, note.

use std::collections::BTreeMap;

use super::super::results::Results;
use super::syntax::escaped;

pub(super) fn opening(results: &Results) -> String {
    let items: String = results.conditions().iter().map(|line| format!("  - {line}\n")).collect();
    let note = results.campaign.experiment.note.as_ref().map(|note| format!("\nNote: {note}\n"));
    format!("{}:\n{items}{}{}", results.title(), variants(results), note.unwrap_or_default())
}

/// Lists the settings that each variant changes; empty if no variant changes any.
fn variants(results: &Results) -> String {
    let line = |(label, set): (&str, BTreeMap<String, String>)| {
        let set: Vec<String> =
            set.into_iter().map(|(key, value)| escaped(&format!("{key} = {value}"))).collect();
        let set = if set.is_empty() { "nothing".into() } else { set.join(", ") };
        format!("    - {}: {set}\n", escaped(label))
    };
    let lines: String = results.changes().map(line).collect();
    let heading = "  - what each variant changes:\n";
    results.changed_names().map(|_| format!("{heading}{lines}")).unwrap_or_default()
}
