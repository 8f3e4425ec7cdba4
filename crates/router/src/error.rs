//! Unusable input, and the text of a failure with its causes.

use std::error::Error;
use std::iter::successors;

/// Input that the program cannot use. The text says what to write instead. The program ends with exit code 2 when one of
/// an error's causes is a `BadInput`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// The error and its causes, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |cause| {
        let cause: &'a (dyn Error + 'static) = *cause;
        cause.source()
    })
}

/// Joins the texts of an error and its causes with colons. A cause is left out if the text before it contains it.
pub fn message(error: &(dyn Error + 'static)) -> String {
    causes(error).fold(String::new(), |text, cause| match cause.to_string() {
        cause if text.is_empty() => cause,
        cause if text.contains(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}
