//! The instruction sets that this processor has, and which of them an algorithm uses.

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(pub(super) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx2,
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx512,
}

impl Isa {
    /// Plain code, which every processor runs.
    pub const SCALAR: Isa = Isa(Kind::Scalar);

    /// All instruction sets of this processor, the widest last.
    pub fn available() -> Vec<Isa> {
        #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(unused_mut))]
        let mut all = vec![Isa::SCALAR];
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
            all.extend(avx2.then_some(Isa(Kind::Avx2)));
            let avx512 = avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            all.extend(avx512.then_some(Isa(Kind::Avx512)));
        }
        all
    }

    /// The widest instruction set of this processor.
    pub fn best() -> Isa {
        Isa::available().pop().unwrap_or(Isa::SCALAR)
    }

    /// `scalar`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            Kind::Avx2 => "avx2",
            #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
            Kind::Avx512 => "avx512",
        }
    }
}

/// Which instruction set the batches of an algorithm use. It is resolved once, when a table is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsaChoice {
    /// The widest of the processor.
    #[default]
    Best,
    /// This one, to compare instruction sets with each other.
    Only(Isa),
}

impl IsaChoice {
    /// The instruction set to compile a table for.
    pub fn resolve(self) -> Isa {
        match self {
            IsaChoice::Best => Isa::best(),
            IsaChoice::Only(isa) => isa,
        }
    }
}
