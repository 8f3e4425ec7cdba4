//! Call graphs of pmcstat (`.pmc.graph`): a function at the start of a line, its callers below it.

use serde::Serialize;

use crate::error::{LineError, Problem, at, whole};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallGraph {
    pub event: String,
    pub samples: u64,
    /// The functions with the most samples, first.
    pub hottest: Vec<(String, u64)>,
}

const SHOWN: usize = 5;

pub fn parse(text: &str) -> Result<CallGraph, LineError> {
    whole(text)?;
    let Some((event, samples)) = text.lines().next().and_then(head) else {
        return at(1, Problem::Foreign { expected: "a call graph of pmcstat" });
    };
    let mut hottest = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let Some(entry) = entry(line) else {
            return at(index + 1, Problem::Foreign { expected: "a line of a call graph" });
        };
        hottest.extend((!line.starts_with(' ')).then_some(entry));
    }
    hottest.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    hottest.truncate(SHOWN);
    Ok(CallGraph { event, samples, hottest })
}

fn head(line: &str) -> Option<(String, u64)> {
    let (event, count) = line.strip_prefix("@ ")?.split_once(" [")?;
    Some((event.into(), count.strip_suffix(" samples]")?.parse().ok()?))
}

fn entry(line: &str) -> Option<(String, u64)> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, count, name, ..] => {
            Some((name.into(), count.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?))
        }
        _ => None,
    }
}
