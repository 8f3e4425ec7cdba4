//! What the log says where the kernel does not note failed links itself.

use fullview_plane::link_program::LinkProgramError;

use crate::log;

pub fn log_refusal(refusal: &LinkProgramError) {
    let why = without_verifier_log(&refusal.to_string());
    log::line(&format!("failed links are left when the kernel has reported them, not at once: {why}"));
}

/// The first line of an error: what follows is the log of the kernel's verifier.
pub fn without_verifier_log(error: &str) -> String {
    error.lines().next().unwrap_or_default().to_owned()
}
