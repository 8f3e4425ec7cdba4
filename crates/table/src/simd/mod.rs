//! Sixteen 32-bit lanes behind one small trait.
//!
//! An algorithm writes its batch loop once, as a `Kernel` over `Lanes`; `run` compiles it for each instruction set and
//! enters the version that an [`Isa`] names. An `Isa` exists only if this processor has it, and every gather clamps its
//! indices, so kernels need no `unsafe`, and a mistake in one can only cause a wrong answer.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
mod inserts;
mod isa;
mod lanes;
mod line;
mod places;
mod scalar;
#[cfg(test)]
mod tests;

use isa::Kind;
pub use isa::{Isa, IsaChoice};
pub(crate) use lanes::{Kernel, LANES, Lanes};
pub(crate) use line::{LinkedLine, SearchLine};
pub(crate) use places::Places;

/// Runs a kernel with one instruction set.
pub(crate) fn run<K: Kernel>(isa: Isa, kernel: K) {
    match isa.0 {
        Kind::Scalar => kernel.run(scalar::Scalar),
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        // SAFETY: an `Isa` of this kind is made only where the processor was found to have AVX2 and POPCNT.
        Kind::Avx2 => unsafe { avx2::enter(kernel) },
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        // SAFETY: an `Isa` of this kind is made only where the processor was found to have AVX-512 F and BW, and
        // POPCNT.
        Kind::Avx512 => unsafe { avx512::enter(kernel) },
    }
}
