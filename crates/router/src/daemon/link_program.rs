//! Whether the kernel notes failed links itself, and what the log says where it does not.

use fullview_plane::link_program::LinkProgramError;

use crate::log;

/// The network namespace whose failed links a program can note; `None`, and a line in the log, if the program was refused.
pub fn noted_namespace(attached: Result<u32, LinkProgramError>) -> Option<u32> {
    attached.inspect_err(log_refusal).ok()
}

fn log_refusal(refusal: &LinkProgramError) {
    let why = without_verifier_log(&refusal.to_string());
    log::line(&format!("failed links are left when the kernel has reported them, not at once: {why}"));
}

/// The first line of an error: what follows is the log of the kernel's verifier.
pub fn without_verifier_log(error: &str) -> String {
    error.lines().next().unwrap_or_default().to_owned()
}
