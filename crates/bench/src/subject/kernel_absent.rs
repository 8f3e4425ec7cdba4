//! In place of `kernel.rs`, in a program that was built without the feature `bpf`.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use fullview_lab::{Measurement, Subject, SubjectError, Window};
use fullview_router::error::BadInput;

use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::Inputs;
use crate::error::BenchError;
use crate::settings::Settings;

fn missing() -> BenchError {
    BadInput("kind \"kernel\" loads programs into the kernel: build with --features bpf (needs clang)".into())
        .into()
}

/// Fails with the name of the missing feature.
pub fn describe(_cores: Cores) -> Result<Vec<String>, BenchError> {
    Err(missing())
}

/// Refuses every subject.
pub struct KernelFactory(());

/// No value of this type exists.
pub struct KernelPath(Infallible);

impl KernelFactory {
    /// A factory that refuses.
    pub fn new(_cores: Cores) -> KernelFactory {
        KernelFactory(())
    }

    /// Fails with the name of the missing feature.
    pub fn make<A: BenchFamily>(
        &mut self,
        _inputs: &mut Inputs,
        _settings: &Settings,
        _seed: u64,
    ) -> Result<KernelPath, BenchError> {
        Err(missing())
    }
}

impl Subject for KernelPath {
    fn verify(&mut self) -> Result<(), SubjectError> {
        match self.0 {}
    }

    fn measure(&mut self, _window: &Window, _stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        match self.0 {}
    }
}
