//! What is wrong with a rule set, where, and how to fix it.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::brief::brief;

/// A place in a file of a rule set. Lines and columns start at 1.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Position {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {kind}")]
pub struct PfError {
    pub position: Position,
    pub kind: PfErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PfErrorKind {
    #[error("syntax error: found {found} where {expected} should be")]
    Syntax { found: String, expected: String },
    /// A part of pf.conf(5) that this filter does not have.
    #[error("'{word}' is not supported: {instead}")]
    Refused { word: String, instead: &'static str },
    #[error("{problem}; {fix}")]
    Invalid { problem: String, fix: String },
    #[error("macro '{name}' is not defined; write {name} = \"value\" above this line")]
    UndefinedMacro { name: String },
    #[error("cannot read '{file}': {reason}; give a path that can be read from the working directory")]
    Unreadable { file: String, reason: String },
}

pub type PfResult<T> = Result<T, PfError>;

impl PfError {
    pub fn invalid(position: &Position, problem: impl Into<String>, fix: impl Into<String>) -> PfError {
        let kind = PfErrorKind::Invalid { problem: brief(&problem.into()), fix: brief(&fix.into()) };
        PfError { position: position.clone(), kind }
    }

    pub fn refused(position: &Position, word: &str, instead: &'static str) -> PfError {
        PfError { position: position.clone(), kind: PfErrorKind::Refused { word: brief(word), instead } }
    }

    pub fn syntax(position: &Position, found: impl Into<String>, expected: impl Into<String>) -> PfError {
        let kind = PfErrorKind::Syntax { found: brief(&found.into()), expected: brief(&expected.into()) };
        PfError { position: position.clone(), kind }
    }

    pub fn undefined_macro(position: &Position, name: &str) -> PfError {
        PfError { position: position.clone(), kind: PfErrorKind::UndefinedMacro { name: brief(name) } }
    }

    pub fn unreadable(position: &Position, file: &str, error: &io::Error) -> PfError {
        if error.kind() == io::ErrorKind::InvalidData {
            let problem = format!("cannot read '{}': {error}", brief(file));
            return PfError::invalid(position, problem, "save the file as UTF-8");
        }
        let kind = PfErrorKind::Unreadable { file: brief(file), reason: error.to_string() };
        PfError { position: position.clone(), kind }
    }
}
