//! Loops over the packets of known flows, compiled for each instruction set.
//!
//! A loop is written once, as a [`FlowLoop`]; [`FlowIsa::run`] enters the version that is compiled for the set, in which the
//! compiler compares whole flows at once, and gives it the hash that is fastest there. A [`FlowIsa`] exists only if this
//! processor has it, so loops need no `unsafe`.
#![allow(unsafe_code)]

mod flow_loop;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod four_rounds;
mod isa;
mod multiplied;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod rounds;

pub use flow_loop::{FlowLoop, WireHasher};
pub use isa::FlowIsa;
use isa::Kind;
use multiplied::Multiplied;

impl FlowIsa {
    /// Runs a loop with this instruction set.
    #[inline]
    pub fn run<L: FlowLoop>(self, of: L) -> L::Output {
        match self.0 {
            Kind::Scalar => of.run(Multiplied),
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            // SAFETY: an instruction set of this kind is made only where the processor was found to have all of it.
            Kind::Avx2 => unsafe { rounds::with_avx2(of) },
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            // SAFETY: as above.
            Kind::Avx512 => unsafe { four_rounds::with_avx512(of) },
            // None of this kind is made.
            #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
            Kind::Avx2 | Kind::Avx512 => of.run(Multiplied),
        }
    }
}
