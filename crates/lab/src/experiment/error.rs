//! Errors in an experiment file, with their place in the file.

use toml::de::{DeTable, DeValue};

use super::window::replaced_key;

/// Why an experiment file cannot be used. Lines and columns are counted from one; columns are counted in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ExperimentError {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// Line of the error.
    pub line: usize,
    /// Column of the error.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// One step of the path from the top of the file to a value.
#[derive(Debug, Clone, Copy)]
pub enum PathStep<'a> {
    /// The value of this key in a table.
    Key(&'a str),
    /// The element at this position, from zero, in a list.
    Item(usize),
}

/// A value that was read but cannot be used.
#[derive(Debug)]
pub(super) struct InvalidValue {
    pub(super) path: Vec<PathStep<'static>>,
    pub(super) message: String,
}

impl ExperimentError {
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let message = error.message();
        let advice = if message.starts_with("missing field") { ": add it here" } else { "" };
        let replaced = replaced_key(message).map(str::to_owned);
        Self::at(file, text, offset, replaced.unwrap_or_else(|| format!("{message}{advice}")))
    }

    pub(super) fn at_path(file: &str, text: &str, path: &[PathStep<'_>], message: String) -> Self {
        Self::at(file, text, offset_of(text, path), message)
    }

    fn at(file: &str, text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            file: file.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

/// Returns the byte offset of the value at `path`, or of the deepest table on the path that the text contains.
fn offset_of(text: &str, path: &[PathStep<'_>]) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 0 };
    let Some((PathStep::Key(first), rest)) = path.split_first() else { return 0 };
    let Some(mut here) = document.get_ref().get(*first) else { return 0 };
    for step in rest {
        let Some(next) = descend(here.get_ref(), *step) else { break };
        here = next;
    }
    here.span().start
}

fn descend<'a, 'i>(value: &'a DeValue<'i>, step: PathStep<'_>) -> Option<&'a toml::Spanned<DeValue<'i>>> {
    match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Item(index) => value.get(index),
    }
}
