//! The machines of a test bed, on the page of a measurement.

use std::fmt::Write;

use super::bed::RecordedNode;
use super::protocol::NodeFacts;

/// A table of Markdown.
pub fn machines(nodes: &[RecordedNode]) -> String {
    let mut text = String::from(
        "| node | system | processor | threads | interfaces |\n| --- | --- | --- | ---: | --- |\n",
    );
    for RecordedNode { name, system, facts, .. } in nodes {
        let _ = match facts {
            None => writeln!(text, "| {name} | {system} | | | |"),
            Some(facts) => {
                let used: Vec<String> = facts
                    .interfaces
                    .iter()
                    .map(|interface| match &interface.driver {
                        Some(driver) => format!("{} ({driver})", interface.name),
                        None => interface.name.clone(),
                    })
                    .collect();
                writeln!(
                    text,
                    "| {name} | {system} | {} | {} | {} |",
                    processor(facts),
                    threads(facts),
                    used.join(", ")
                )
            }
        };
    }
    text
}

/// The model, where the machine names it.
pub fn processor(facts: &NodeFacts) -> &str {
    facts.host.cpu.as_deref().unwrap_or("unnamed processor")
}

/// Hardware threads.
pub fn threads(facts: &NodeFacts) -> usize {
    facts.host.threads.unwrap_or(1)
}
