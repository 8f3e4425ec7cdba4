//! Input that cannot be used, and how a failure's causes become one line.

/// Input that cannot be used: the words say what to write instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// The causes of a failure, outermost first, without a cause that the message before it already contains.
pub fn message(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        cause if said.is_empty() => cause,
        cause if said.contains(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}
