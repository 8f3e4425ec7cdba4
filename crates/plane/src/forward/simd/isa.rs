//! The instruction sets that this processor has.

/// An instruction set that this processor has, for reading headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParserIsa(pub(super) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    Avx2,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512,
}

impl ParserIsa {
    /// Plain code, which every processor runs.
    pub const SCALAR: ParserIsa = ParserIsa(Kind::Scalar);

    /// All instruction sets of this processor, the widest last.
    pub fn available() -> Vec<ParserIsa> {
        let all = [Kind::Scalar, Kind::Avx2, Kind::Avx512];
        all.into_iter().filter(|kind| kind.is_there()).map(ParserIsa).collect()
    }

    /// The widest instruction set of this processor.
    pub fn best() -> ParserIsa {
        ParserIsa::available().pop().unwrap_or(ParserIsa::SCALAR)
    }
}

impl Kind {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    fn is_there(self) -> bool {
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        match self {
            Kind::Scalar => true,
            Kind::Avx2 => is_x86_feature_detected!("avx2"),
            Kind::Avx512 => has_avx512,
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    fn is_there(self) -> bool {
        self == Kind::Scalar
    }
}
