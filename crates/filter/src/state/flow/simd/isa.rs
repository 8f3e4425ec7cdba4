//! The instruction sets that this processor has.

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowIsa(pub(super) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    /// AVX2 and AES.
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx2,
    /// AVX-512 (F, BW, DQ, VL) and AES.
    #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
    Avx512,
}

impl FlowIsa {
    /// Plain code, which every processor runs.
    pub const SCALAR: FlowIsa = FlowIsa(Kind::Scalar);

    /// All instruction sets of this processor, the widest last.
    pub fn available() -> Vec<FlowIsa> {
        #[cfg_attr(not(all(target_arch = "x86_64", not(fullview_portable))), allow(unused_mut))]
        let mut all = vec![FlowIsa::SCALAR];
        #[cfg(all(target_arch = "x86_64", not(fullview_portable)))]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("aes");
            all.extend(avx2.then_some(FlowIsa(Kind::Avx2)));
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            all.extend(avx512.then_some(FlowIsa(Kind::Avx512)));
        }
        all
    }

    /// The widest instruction set of this processor.
    pub fn best() -> FlowIsa {
        FlowIsa::available().pop().unwrap_or(FlowIsa::SCALAR)
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
