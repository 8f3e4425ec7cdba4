//! What the bench has to know of an address family beyond its inputs.

use std::sync::Arc;

use fullview_router::algorithm;
use fullview_table::fib::Fib;

use super::inputs::InputFamily;
use crate::error::BenchError;
use crate::settings::Peer;
#[cfg(feature = "bpf")]
use crate::testbed::TestbedHeaders as TestbedAddress;
use crate::traffic::frame::Headers;
use crate::workload::changes::ChangeFamily;

/// Any address: without the feature `bpf` there is no test bed.
#[cfg(not(feature = "bpf"))]
pub trait TestbedAddress {}
#[cfg(not(feature = "bpf"))]
impl<A> TestbedAddress for A {}

/// The FIBs of both families that one forwarder looks up in.
pub type Fibs = (Arc<dyn Fib<u32>>, Arc<dyn Fib<u128>>);

/// An address family that the bench can measure.
pub trait BenchFamily: InputFamily + Headers + ChangeFamily + TestbedAddress {
    /// This FIB, and one without routes for the other family.
    fn fibs(fib: Arc<dyn Fib<Self>>) -> Result<Fibs, BenchError>;
    /// The name of the peer's contestant for this family.
    fn contestant(peer: &Peer) -> Option<&String>;
}

impl BenchFamily for u32 {
    fn fibs(fib: Arc<dyn Fib<u32>>) -> Result<Fibs, BenchError> {
        Ok((fib, algorithm::without_routes()?))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet.as_ref()
    }
}

impl BenchFamily for u128 {
    fn fibs(fib: Arc<dyn Fib<u128>>) -> Result<Fibs, BenchError> {
        Ok((algorithm::without_routes()?, fib))
    }
    fn contestant(peer: &Peer) -> Option<&String> {
        peer.inet6.as_ref()
    }
}
