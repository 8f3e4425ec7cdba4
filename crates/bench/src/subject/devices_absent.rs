//! In place of `devices.rs`, in a program that was built without the feature `bpf`: it has no test bed.

use fullview_lab::{Experiment, PanelError, PanelWork};
use fullview_router::error::BadInput;

use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::Inputs;
use crate::error::BenchError;
use crate::settings::Settings;

fn missing() -> BenchError {
    BadInput("kind \"testbed\" needs a test bed: build with --features bpf (needs clang)".into()).into()
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
pub fn check(_settings: &Settings) -> Result<(), BenchError> {
    Err(missing())
}

/// Refuses every panel.
#[derive(Default)]
pub struct DeviceFactory(());

impl DeviceFactory {
    /// Fails with the name of the missing feature.
    pub fn panel<A: BenchFamily>(
        &mut self,
        _inputs: &mut Inputs,
        _streams: &[FamilyStream],
        _seed: u64,
        _work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        Err(PanelError::Bed(missing().into()))
    }
}
