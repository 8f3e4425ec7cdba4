//! In place of `veth.rs`, in a program that was built without the feature `bpf`: its router cannot take packets over from the
//! kernel.

use fullview_lab::{Experiment, PanelError, PanelWork};
use fullview_router::error::BadInput;

use super::family_stream::FamilyStream;
use crate::error::BenchError;
use crate::settings::Settings;

fn missing() -> BenchError {
    BadInput(
        "kind \"veth\" needs a router that the kernel yields to: build with --features bpf (needs clang)"
            .into(),
    )
    .into()
}

/// Fails with the name of the missing feature.
pub fn describe() -> Result<Vec<String>, BenchError> {
    Err(missing())
}

/// Fails with the name of the missing feature.
pub fn check_window(_experiment: &Experiment<Settings>) -> Result<(), BenchError> {
    Err(missing())
}

/// Fails with the name of the missing feature.
pub fn check(_stream: &FamilyStream) -> Result<(), BenchError> {
    Err(missing())
}

/// Fails with the name of the missing feature.
pub fn metric(_stream: &FamilyStream) -> Result<String, BenchError> {
    Err(missing())
}

/// Refuses every panel.
#[derive(Default)]
pub struct VethFactory(());

impl VethFactory {
    /// Fails with the name of the missing feature.
    pub fn panel(
        &mut self,
        _streams: &[FamilyStream],
        _seed: u64,
        _work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        Err(PanelError::Bed(missing().into()))
    }
}
