//! The slices that the subjects of each kind can run.

use std::time::Duration;

use fullview_lab::{Experiment, ExperimentError, SliceLimits};

use super::family_stream::FamilyStream;
use super::variants::variants;
use crate::settings::{Kind, Settings, Shape};

/// The clock is read every few microseconds, so any slice is possible; beyond the longest the noise of a shared machine
/// is no longer common to the arms.
const ONE_CORE: SliceLimits = of_micros([50, 16_000]);
/// Each slice makes its packet memory and starts its threads, which takes one or two milliseconds.
const TWO_CORES: SliceLimits = of_micros([20_000, 80_000]);
/// A slice is asked for and answered through pipes, which takes some ten microseconds.
const PEERS: SliceLimits = of_micros([1_000, 16_000]);
/// Slices are made of chunks of keys.
const LOOKUP: SliceLimits = of_micros([200, 16_000]);
/// A change takes from a tenth of a microsecond to some tens of them.
pub const UPDATES: SliceLimits = of_micros([200, 16_000]);
/// A call of BPF_PROG_RUN for a batch takes 0.04 ms (median of 200, Linux 6.18, EPYC Zen 5), and a turn of 1 ms with a
/// lead-in of 0.5 ms takes 2.1 ms of the clock: a shorter one would wait longer than it forwards. While the generator is
/// attached to no device, a call takes 24 ms.
///
/// How long caches take to be warm again is for the calibration: with 100,000 IPv4 routes and four other forwarders,
/// ip_forward has 0.79 Mpps in slices of 1 ms and 0.97 in slices of 20 ms. With caches that others have used for as long, a
/// table of a million routes is warm after a tenth of the longest.
const KERNEL: SliceLimits = of_micros([1_000, 256_000]);
/// A shorter turn would measure how clients start. The record of a slice has no room for a longer one.
const VETH: SliceLimits = of_micros([10_000, 4_000_000]);
/// In a shorter turn the queues of veth devices, some hundred packets, would count. The record of a slice has no room for a
/// longer one.
const TESTBED: SliceLimits = of_micros([10_000, 4_000_000]);

const fn of_micros([shortest, longest]: [u64; 2]) -> SliceLimits {
    SliceLimits { shortest: Duration::from_micros(shortest), longest: Duration::from_micros(longest) }
}

/// Refuses a length of turns that the subject of an experiment cannot run. The shape of a forwarding path is settled before.
pub fn check_slice(experiment: &Experiment<Settings>) -> Result<(), ExperimentError> {
    let SliceLimits { shortest, longest } = slice_limits(experiment);
    experiment.check_slice([shortest, longest])
}

/// The slices that the subject of an experiment can run.
pub fn slice_limits(experiment: &Experiment<Settings>) -> SliceLimits {
    of_members(&variants(experiment).iter().collect::<Vec<_>>())
}

/// The slices that the panel of these members can run.
pub fn of_panel(streams: &[FamilyStream]) -> SliceLimits {
    of_members(&streams.iter().map(|stream| &stream.settings).collect::<Vec<_>>())
}

/// Members of a panel have the same kind and the same shape.
fn of_members(members: &[&Settings]) -> SliceLimits {
    let any = |is: fn(&Settings) -> bool| members.iter().any(|settings| is(settings));
    let have_peers = any(|settings| settings.load.peer.is_some() || settings.lookup.peer.is_some());
    let are_two_cores = any(|settings| settings.load.shape == Some(Shape::TwoCores));
    match members.first().map_or(Kind::Forward, |settings| settings.kind()) {
        Kind::Kernel => KERNEL,
        Kind::Veth => VETH,
        Kind::Testbed => TESTBED,
        Kind::Updates => UPDATES,
        Kind::Forward | Kind::Lookup if have_peers => PEERS,
        Kind::Lookup => LOOKUP,
        Kind::Forward if are_two_cores => TWO_CORES,
        Kind::Forward => ONE_CORE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = r#"
title = "Which table?"
families = ["inet"]
seed = 1
window = { warmup_s = 0.1, measure_s = 0.1, slice_ms = 20.0 }
subject = { load.shape = "two-cores" }
variants = [{ name = "radix", label = "radix" }, { name = "dxr", label = "DXR" }]
"#;

    fn refusal(slice_ms: &str, subject: &str) -> Option<String> {
        let text = QUESTION.replace("20.0", slice_ms).replace("load.shape = \"two-cores\"", subject);
        let experiment = Experiment::parse("question.toml", &text).unwrap();
        check_slice(&experiment).err().map(|error| error.to_string())
    }

    #[test]
    fn a_slice_that_the_subject_cannot_run_is_refused_with_its_limits() {
        let shape = |shape| format!("load.shape = \"{shape}\"");
        assert_eq!(refusal("20.0", &shape("two-cores")), None);
        let short = refusal("19.9", &shape("two-cores")).unwrap();
        assert!(
            short.starts_with("question.toml:5:56: a slice of 19.9 ms ") && short.contains("20 to 80 ms"),
            "{short}"
        );
        let long = refusal("17", &shape("one-core")).unwrap();
        assert!(long.contains("a slice of 17 ms") && long.contains("0.05 to 16 ms"), "{long}");
        assert_eq!(refusal("16", &shape("one-core")), None);
    }

    /// The shape of `[subject]` is not theirs.
    #[test]
    fn the_shape_that_all_variants_set_decides() {
        let one_core = "label = \"radix\", set.load.shape = \"one-core\"";
        let text = QUESTION.replace("label = \"radix\"", one_core);
        let text = text.replace("label = \"DXR\"", "label = \"DXR\", set.load.shape = \"one-core\"");
        let experiment = Experiment::parse("question.toml", &text.replace("20.0", "16")).unwrap();
        check_slice(&experiment).unwrap();
    }

    #[test]
    fn every_kind_has_its_limits() {
        let peer = |of| format!("{of}.peer = {{ program = \"p\", inet = \"a:1\" }}");
        let limits = |subject: &str| refusal("100.0", subject).map(|error| error.contains("1 to 16 ms"));
        assert_eq!(limits(&peer("load")), Some(true));
        assert_eq!(limits(&format!("kind = \"lookup\", {}", peer("lookup"))), Some(true));
        assert_eq!(limits("kind = \"lookup\""), Some(false));
        assert_eq!(limits("kind = \"updates\""), Some(false));
        for kind in ["kernel", "veth", "testbed"] {
            assert_eq!(limits(&format!("kind = \"{kind}\"")), None, "{kind}");
        }
    }
}
