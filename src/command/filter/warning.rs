//! Warnings about rules that are correct.

use std::fmt::Display;

use fullview_router::log;

/// Says what rules lack here, such as an interface that does not exist. They may be rules of another machine.
pub fn warn(missing: &impl Display) {
    log::warning(&format!("fullview: warning: {missing}"));
}
