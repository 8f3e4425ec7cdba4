//! Warnings about rules that are correct.

use fullview_filter::interfaces::UnknownInterface;
use fullview_router::log;

/// Says that rules name an interface that does not exist. They may be rules of another machine.
pub fn warn(unknown: &UnknownInterface) {
    log::warning(&format!("fullview: warning: {unknown}"));
}
