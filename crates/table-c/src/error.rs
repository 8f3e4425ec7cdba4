//! Errors: a status for C programs, and a message for people.

use std::cell::RefCell;
use std::ffi::CString;

use fullview_table::feed::FeedError;
use fullview_table::fib::CompileError;
use fullview_table::nexthop::TooManyNextHops;

use crate::status::FvStatus;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Argument(String),
    #[error("{0}")]
    Feed(#[from] FeedError),
    #[error("there is no algorithm {name:?} for {family}; use auto, {known}")]
    Algorithm { name: String, family: fullview_table::Family, known: String },
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error(
        "no algorithm can serve the {0} routes; call fv_table_compile with the name of one to try it again"
    )]
    Unserved(fullview_table::Family),
    #[error("{0}")]
    NextHops(#[from] TooManyNextHops),
    #[error("the {0} routes are not compiled; call fv_table_compile first")]
    NotCompiled(fullview_table::Family),
    #[error("a bug in fullview: {0}; free this table and report the call")]
    Bug(String),
}

impl Error {
    pub(crate) fn argument(what: impl Into<String>) -> Self {
        Error::Argument(what.into())
    }

    pub(crate) fn status(&self) -> FvStatus {
        match self {
            Error::Argument(_) => FvStatus::FV_ARGUMENT,
            Error::Feed(_) => FvStatus::FV_FEED,
            Error::Algorithm { .. } => FvStatus::FV_ALGORITHM,
            Error::Compile(_) | Error::Unserved(_) => FvStatus::FV_COMPILE,
            Error::NextHops(_) => FvStatus::FV_NEXT_HOPS,
            Error::NotCompiled(_) => FvStatus::FV_NOT_COMPILED,
            Error::Bug(_) => FvStatus::FV_BUG,
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the message for [`last`], on this thread.
pub(crate) fn keep(error: &Error) {
    // C cannot pass a path that contains a NUL, but the text of a table file may contain one.
    let text = error.to_string().replace('\0', "?");
    LAST.with_borrow_mut(|last| *last = CString::new(text).unwrap_or_default());
}

/// The message of the last failure on this thread; empty before the first. It is valid until the next failure.
pub(crate) fn last() -> *const std::ffi::c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
