//! The opening of the report: the answer, title, conditions, note.

use std::collections::BTreeMap;

use super::super::answer;
use super::super::results::Results;
use super::syntax::escaped;

pub(super) fn opening(results: &Results) -> String {
    let items: String = results.conditions().iter().map(|line| format!("  - {line}\n")).collect();
    let note = results.campaign.experiment.note.as_ref().map(|note| format!("\nNote: {note}\n"));
    format!(
        "{}{}:\n{items}{}{}{}",
        answer(results),
        escaped(results.title()),
        variants(results),
        models(results),
        note.unwrap_or_default()
    )
}

/// The sentences of the answer, and above them whether the campaign can be trusted, and whose output was wrong.
fn answer(results: &Results) -> String {
    let statements = answer::untrusted(results).into_iter().chain(answer::trust_unknown(results));
    let statements = statements.chain(results.misrouted());
    let trust: String = statements.map(|statement| format!("**{}**\n\n", escaped(&statement))).collect();
    let sentences = answer::sentences(results);
    let lines: String = sentences.iter().map(|sentence| format!("  - {}\n", escaped(sentence))).collect();
    let gap = if lines.is_empty() { "" } else { "\n" };
    trust + &lines + gap
}

/// Says which systems did not run.
fn models(results: &Results) -> String {
    let variants = results.campaign.experiment.variants.iter();
    let systems: Vec<String> =
        variants.filter_map(|variant| variant.model_of.as_deref()).map(escaped).collect();
    let line = || {
        format!("  - models, of fullview's own code, stand for what did not run: {}\n", systems.join("; "))
    };
    if systems.is_empty() { String::new() } else { line() }
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
