//! The instruction sets that this processor has.

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowIsa(pub(super) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    /// AVX2, BMI1, BMI2 and AES.
    Avx2,
    /// These, and AVX-512 F, BW, DQ and VL, and VAES.
    Avx512,
}

impl FlowIsa {
    /// Plain code, which every processor runs.
    pub const SCALAR: FlowIsa = FlowIsa(Kind::Scalar);

    /// All instruction sets of this processor, the widest last.
    pub fn available() -> Vec<FlowIsa> {
        let all = [Kind::Scalar, Kind::Avx2, Kind::Avx512];
        all.into_iter().filter(|kind| kind.is_there()).map(FlowIsa).collect()
    }

    /// The widest instruction set of this processor.
    pub fn best() -> FlowIsa {
        FlowIsa::available().pop().unwrap_or(FlowIsa::SCALAR)
    }
}

impl Kind {
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    fn is_there(self) -> bool {
        let has_avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("aes");
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("vaes");
        match self {
            Kind::Scalar => true,
            Kind::Avx2 => has_avx2,
            Kind::Avx512 => has_avx2 && has_avx512,
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(fullview_portable))))]
    fn is_there(self) -> bool {
        self == Kind::Scalar
    }
}
