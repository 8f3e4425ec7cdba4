//! The machines of a test bed, on the page of a measurement.

use std::fmt::Write;

use fullview_lab::report::{code, escaped};

use super::bed::RecordedNode;
use super::hooks::HOOKS;
use super::inventory::{HookSettings, NodeSettings};
use super::protocol::NodeFacts;

/// A table of Markdown.
pub fn machines(nodes: &[RecordedNode]) -> String {
    let mut text = String::from(
        "| node | system | processor | threads | interfaces |\n| --- | --- | --- | ---: | --- |\n",
    );
    for RecordedNode { name, system, facts, .. } in nodes {
        let [name, system] = [name, system].map(|text| escaped(text));
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
                    escaped(processor(facts)),
                    threads(facts),
                    used.join(", ")
                )
            }
        };
    }
    text
}

/// Settings that the inventory declares, as a table of Markdown; nothing if there are none.
pub fn declared_settings(nodes: &[RecordedNode]) -> String {
    if nodes.iter().all(|node| node.tuned.is_empty()) {
        return String::new();
    }
    let mut text =
        String::from("\n| node | declared setting | before | measured with |\n| --- | --- | --- | --- |\n");
    for (node, one) in nodes.iter().flat_map(|node| node.tuned.iter().map(move |one| (node, one))) {
        let cells = [&node.name, &one.setting, &one.before, &one.value].map(|cell| escaped(cell));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// The commands around searches, as a section; nothing if there are none.
pub fn hooks(hooks: &[HookSettings]) -> String {
    if hooks.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## Hooks\n\nWhat they printed is in the folder `{HOOKS}`.\n\n| node | when | command |\n| --- | --- | --- |\n"
    );
    for HookSettings { node, when, command, .. } in hooks {
        let _ = writeln!(text, "| {node} | {} | {} |", when.word(), code_cell(command));
    }
    text
}

/// The lines that send and receive where this program does not run, as a section; nothing if there are none.
pub fn traffic_lines(nodes: &[NodeSettings]) -> String {
    let lines =
        |node: &NodeSettings| [&node.send, &node.receive].into_iter().flatten().cloned().collect::<Vec<_>>();
    let all: Vec<(&str, String)> =
        nodes.iter().flat_map(|node| lines(node).into_iter().map(|line| (&*node.name, line))).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n## Generator and receiver\n\nThese lines of the inventory send and receive. A receiver counts every frame that arrives.\n\n\
         | node | command |\n| --- | --- |\n",
    );
    for (node, line) in all {
        let _ = writeln!(text, "| {node} | {} |", code_cell(&line));
    }
    text
}

/// A command in a cell of a table.
fn code_cell(command: &str) -> String {
    code(command).replace('|', "\\|")
}

/// The model, where the machine names it.
pub fn processor(facts: &NodeFacts) -> &str {
    facts.host.cpu.as_deref().unwrap_or("unnamed processor")
}

/// Hardware threads.
pub fn threads(facts: &NodeFacts) -> usize {
    facts.host.threads.unwrap_or(1)
}
