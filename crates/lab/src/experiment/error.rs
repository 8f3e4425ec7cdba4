//! Mistakes in an experiment file, with the place to mend.

use toml::de::{DeTable, DeValue};

/// Why an experiment file cannot be used. Lines and columns count from one; a column counts characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ExperimentError {
    /// The file as the caller named it.
    pub file: String,
    /// Line of the mistake.
    pub line: usize,
    /// Column of the mistake.
    pub column: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// One step from the top of the file down to a value.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// The value of this key in a table.
    Key(&'a str),
    /// The element at this position, from zero, in a list.
    Item(usize),
}

/// A value that was read but makes no experiment.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) path: Vec<Step<'static>>,
    pub(super) message: String,
}

impl ExperimentError {
    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let missing = error.message().starts_with("missing field");
        let mend = if missing { ": add it here" } else { "" };
        Self::at(file, text, offset, format!("{}{mend}", error.message()))
    }

    pub(super) fn mistake(file: &str, text: &str, path: &[Step<'_>], message: String) -> Self {
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

/// Byte offset of the value at `path`, or of the deepest table on the way to it that the text does spell out.
fn offset_of(text: &str, path: &[Step<'_>]) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 0 };
    let Some((Step::Key(first), rest)) = path.split_first() else { return 0 };
    let Some(mut here) = document.get_ref().get(*first) else { return 0 };
    for step in rest {
        let Some(next) = descend(here.get_ref(), *step) else { break };
        here = next;
    }
    here.span().start
}

fn descend<'a, 'i>(value: &'a DeValue<'i>, step: Step<'_>) -> Option<&'a toml::Spanned<DeValue<'i>>> {
    match step {
        Step::Key(key) => value.get(key),
        Step::Item(index) => value.get(index),
    }
}
