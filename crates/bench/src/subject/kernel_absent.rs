//! In place of `kernel.rs`, in a program that was built without the feature `bpf`.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use crate::traffic::flow::FlowSet;
use anyhow::bail;
use fullview_lab::{Measurement, Subject, SubjectError, Window};
use fullview_table::Table;

use super::Served;
use super::placement::Cores;
use crate::settings::{KernelForwarder, TableSettings};
use fullview_router::error::BadInput;

/// Any address: none is sent to.
pub trait OnWire {}
impl<A> OnWire for A {}

/// No test bed.
#[derive(Default)]
pub struct Bed(());

fn missing() -> anyhow::Error {
    BadInput("kind \"kernel\" loads programs into the kernel: build with --features bpf (needs clang)".into())
        .into()
}

pub fn describe(_cores: Cores) -> anyhow::Result<Vec<String>> {
    Err(missing())
}

/// There is none of this type.
pub struct KernelPath<A>(std::convert::Infallible, PhantomData<A>);

impl<A: Served> KernelPath<A> {
    pub fn new(
        _bed: &mut Bed,
        _table: (&TableSettings, &Table),
        _flows: &FlowSet<A>,
        _forwarder: KernelForwarder,
        _cores: Cores,
    ) -> anyhow::Result<Self> {
        bail!(missing())
    }
}

impl<A> Subject for KernelPath<A> {
    fn verify(&mut self) -> Result<(), SubjectError> {
        match self.0 {}
    }

    fn measure(&mut self, _window: &Window, _stop: &AtomicBool) -> Result<Measurement, SubjectError> {
        match self.0 {}
    }
}
