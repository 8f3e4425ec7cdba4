//! `linear`: the oracle. A lookup reads every route, and the longest one that contains the address wins.
//!
//! It shares no idea with any other algorithm, not even the order of the RIB, so it also reveals an error that they
//! have in common.

use crate::addr::Address;
use crate::nexthop::NextHop;
use crate::rib::{Rib, Route, Summary};

use super::{Algorithm, CompileError, Fib, Footprint, Immutable, Instance};

/// The algorithm, which has no state.
pub struct Linear;

/// All routes, in no particular order.
struct Routes<A: Address>(Vec<Route<A>>);

impl<A: Address> Fib<A> for Routes<A> {
    fn lookup(&self, addr: A) -> NextHop {
        let matching = self.0.iter().filter(|route| route.prefix.contains(addr));
        matching.max_by_key(|route| route.prefix.len()).map_or(NextHop::NONE, |route| route.next_hop)
    }

    fn footprint(&self) -> Footprint {
        Footprint(vec![("routes", size_of_val(&self.0[..]))])
    }
}

impl<A: Address> Algorithm<A> for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    /// It is never chosen: other algorithms are compared with it.
    fn preference(&self, _summary: &Summary) -> u8 {
        0
    }

    fn compile(&self, rib: &Rib<A>) -> Result<Box<dyn Instance<A>>, CompileError> {
        Ok(Immutable::boxed(Routes(rib.iter().collect())))
    }
}
