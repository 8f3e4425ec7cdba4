//! The checks of `fast_parse.rs` for four packets at once.
//!
//! A loop is written once, as a [`HeaderLoop`]; [`ParserIsa::run`] enters the version that is compiled for the instruction set. A
//! [`ParserIsa`] exists only if this processor has it, and headers are read as arrays, so loops need no `unsafe`. Four packets
//! of which one is not plain are left to the plain code, which says which one.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx512;
mod four_headers;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod heads;
mod isa;

use four_headers::OneByOne;
pub use four_headers::{FourHeaders, HeaderLoop};
use isa::Kind;
pub use isa::ParserIsa;

impl ParserIsa {
    /// Runs a loop with this instruction set.
    #[inline]
    pub(super) fn run<L: HeaderLoop>(self, of: L) -> L::Output {
        match self.0 {
            Kind::Scalar => of.run(OneByOne),
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            // SAFETY: an instruction set of this kind is made only where the processor was found to have all of it.
            Kind::Avx2 => unsafe { avx2::enter(of) },
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            // SAFETY: as above.
            Kind::Avx512 => unsafe { avx512::enter(of) },
            // None of this kind is made.
            #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
            Kind::Avx2 | Kind::Avx512 => of.run(OneByOne),
        }
    }
}
