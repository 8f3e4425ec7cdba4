//! Why a configuration cannot be used.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use fullview_table::feed::FeedError;
use rustix::io::Errno;

use crate::algorithm::AlgorithmError;
use crate::error::BadInput;

/// Every variant is bad input: the program ends with exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: cannot read the configuration: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    InFile { path: PathBuf, source: Box<ConfigError> },
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A value that is not possible. The text names its key.
    #[error("{0}")]
    Value(String),
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A part of the plan that is not possible, with the place of its key in the file.
    #[error("at line {line}, column {column}, {value}: {text}")]
    PlanAt { line: usize, column: usize, value: String, text: String },
    #[error("{0}")]
    Algorithm(#[from] AlgorithmError),
    #[error("{0}")]
    Feed(#[from] FeedError),
    #[error("router.cores")]
    Cores(#[source] Errno),
}

impl From<BadInput> for ConfigError {
    fn from(error: BadInput) -> ConfigError {
        AlgorithmError::from(error).into()
    }
}

/// A part of the plan of a router without a kernel that is not possible, and its bytes in the file, if it has one place
/// there.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct PlanError {
    pub text: String,
    pub at: Option<Range<usize>>,
}

impl PlanError {
    pub fn new(text: String) -> PlanError {
        PlanError { text, at: None }
    }

    pub fn at(self, at: &Range<usize>) -> PlanError {
        PlanError { at: Some(at.clone()), ..self }
    }
}

impl ConfigError {
    /// Replaces a plan's bytes in the file by their line and column in `text`, the text of the file.
    pub fn with_place(self, text: &str) -> ConfigError {
        let ConfigError::Plan(PlanError { text: problem, at: Some(at) }) = self else { return self };
        let before = text.get(..at.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        let value = text.get(at).unwrap_or_default().to_owned();
        ConfigError::PlanAt { line, column, value, text: problem }
    }
}

/// Returns a [`ConfigError::Value`] unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err($crate::config::error::ConfigError::Value(format!($($text)*)));
        }
    };
}
pub(super) use ensure;

/// Returns a [`PlanError`] without a place unless a condition holds.
macro_rules! ensure_plan {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err($crate::config::error::PlanError::new(format!($($text)*)));
        }
    };
}
pub(super) use ensure_plan;
