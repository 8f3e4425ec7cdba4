//! In place of `kernel.rs`, in a program that was built without the feature `bpf`.

use fullview_lab::{PanelError, PanelWork};
use fullview_router::error::BadInput;

use super::cores::Cores;
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::Inputs;
use crate::error::BenchError;

fn missing() -> BenchError {
    BadInput("kind \"kernel\" loads programs into the kernel: build with --features bpf (needs clang)".into())
        .into()
}

/// Fails with the name of the missing feature.
pub fn describe(_cores: Cores) -> Result<Vec<String>, BenchError> {
    Err(missing())
}

/// Refuses every panel.
pub struct KernelFactory(());

impl KernelFactory {
    /// A factory that refuses.
    pub fn new(_cores: Cores) -> KernelFactory {
        KernelFactory(())
    }

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
