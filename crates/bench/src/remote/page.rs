//! The machines of a test bed, on the page of a measurement.

use std::fmt::Write;

use super::bed::RecordedNode;

/// A table of Markdown.
pub fn machines(nodes: &[RecordedNode]) -> String {
    let mut text = String::from(
        "| node | system | processor | cores | interfaces |\n| --- | --- | --- | ---: | --- |\n",
    );
    for RecordedNode { name, system, facts } in nodes {
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
                    facts.cpu,
                    facts.cores,
                    used.join(", ")
                )
            }
        };
    }
    text
}
