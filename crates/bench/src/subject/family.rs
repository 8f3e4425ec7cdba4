//! What the bench has to know of an address family beyond the table's [`Registered`].

use std::sync::Arc;

use fullview_router::algorithm;
use fullview_table::fib::Fib;
use fullview_table::fib::registry::Registered;
use fullview_table::{Rib, Table};

use super::inputs::{FamilyInputs, Inputs};
use super::kernel::KernelAddress;
use crate::settings::Peer;
use crate::traffic::frame::Headers;

/// The FIBs of both families that one forwarder looks up in.
pub type Fibs = (Arc<dyn Fib<u32>>, Arc<dyn Fib<u128>>);

/// An address family that the bench can measure.
pub trait BenchFamily: Registered + Headers + KernelAddress {
    /// The table's routes of this family.
    fn rib(table: &Table) -> &Rib<Self>;
    /// The draws kept for this family.
    fn inputs(inputs: &mut Inputs) -> &mut FamilyInputs<Self>;
    /// This FIB, and one without routes for the other family.
    fn fibs(fib: Arc<dyn Fib<Self>>) -> anyhow::Result<Fibs>;
    /// The name of the peer's contestant for this family.
    fn contestant(peer: &Peer) -> Option<&String>;
}

impl BenchFamily for u32 {
    fn rib(table: &Table) -> &Rib<u32> {
        &table.inet
    }
    fn inputs(inputs: &mut Inputs) -> &mut FamilyInputs<u32> {
        &mut inputs.inet
    }
    fn fibs(fib: Arc<dyn Fib<u32>>) -> anyhow::Result<Fibs> {
        Ok((fib, algorithm::without_routes()?))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet.as_ref()
    }
}

impl BenchFamily for u128 {
    fn rib(table: &Table) -> &Rib<u128> {
        &table.inet6
    }
    fn inputs(inputs: &mut Inputs) -> &mut FamilyInputs<u128> {
        &mut inputs.inet6
    }
    fn fibs(fib: Arc<dyn Fib<u128>>) -> anyhow::Result<Fibs> {
        Ok((algorithm::without_routes()?, fib))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet6.as_ref()
    }
}
