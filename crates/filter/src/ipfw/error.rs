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
