use crate::brief::brief;

/// Why a script of ipfw commands is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct IpfwError {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl IpfwError {
    pub(super) fn new(file: &str, line: usize, column: usize, message: &str) -> IpfwError {
        IpfwError { file: file.to_owned(), line, column, message: brief(message) }
    }
}
