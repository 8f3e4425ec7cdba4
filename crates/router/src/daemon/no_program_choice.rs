//! The choice of an engine in a build that has no programs for the kernel.

use std::convert::Infallible;

use super::error::DaemonError;
use crate::control::takeover::RunningRouter;
use crate::error::BadInput;
use crate::options::RouterOptions;

/// There is none.
pub struct ProgramChoice(pub Infallible);

/// Why no program can forward.
pub fn refusal() -> Option<String> {
    Some("this program was built without the feature bpf".into())
}

impl ProgramChoice {
    pub fn of(
        _options: &RouterOptions,
        _running: Option<&RunningRouter>,
    ) -> Result<ProgramChoice, DaemonError> {
        let text = "this engine loads a program into the kernel: build with --features bpf (needs clang)";
        Err(BadInput(text.into()).into())
    }

    pub fn describe(&self) -> String {
        match self.0 {}
    }

    pub fn leaves_unqueued(&self) -> bool {
        match self.0 {}
    }
}
