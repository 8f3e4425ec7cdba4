//! The messages between the program that measures and a process that serves slices: one JSON value in each line.
//!
//! Fields may be added: a reader ignores those that it does not know. Anything else needs a new version.

use std::collections::BTreeMap;

use fullview_lab::host::Build;
use fullview_lab::{Arm, Findings, Slice, SliceLimits, Validity};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of these messages.
pub const PROTOCOL: u32 = 1;

/// What the program that measures asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Makes the members of a panel ready and verifies them.
    Panel(PanelRequest),
    /// Runs a slice.
    Slice(SliceRequest),
    /// What the members and the bed have to report.
    Findings,
    /// Ends the panel, or without one the process.
    End,
}

/// What the serving process answers. The first line is a [`Reply::Hello`]; each later one answers a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Hello(Hello),
    Ready(ServedPanelFacts),
    Slice(ServedSlice),
    Findings(ServedFindings),
    Ended,
    Error(ServedFailure),
}

/// Who serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The `PROTOCOL` of the server.
    pub protocol: u32,
    /// Whether it serves kinds that leave the length of their slices to the user, `veth` and `testbed`; absent from older
    /// builds, which do not.
    #[serde(default)]
    pub given_lengths: bool,
    #[serde(flatten)]
    pub build: ServedBuild,
}

/// The build of a program that serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedBuild {
    pub version: String,
    pub rustc: Option<String>,
    pub commit: Option<String>,
    /// Hash of the program's file; absent from older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub debug: bool,
    /// Cargo features that change what is measured.
    pub features: Vec<String>,
    /// What RUSTFLAGS let the compiler use; absent from older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PanelRequest {
    /// Name of the family.
    pub family: String,
    /// Seed of the campaign: tables and keys follow from it.
    pub campaign_seed: u64,
    /// Seed of the panel: packets follow from it.
    pub seed: u64,
    /// The settings of each member, without those that are not set.
    pub members: Vec<serde_json::Value>,
}

/// A panel that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPanelFacts {
    pub controls: usize,
    pub subtracts: bool,
    /// Whether a schedule offers the load; older builds do not say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced: bool,
    pub shortest_ns: u64,
    pub longest_ns: u64,
    pub members: Vec<ServedMember>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedMember {
    /// The control with the same bed.
    pub control: usize,
    /// Why it takes no part, by the name of a [`Validity`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
    /// What verification found wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRequest {
    pub arm: ServedArm,
    pub lead_in_ns: u64,
    pub length_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServedArm {
    Control(usize),
    Member(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedSlice {
    pub counted: u64,
    pub offered: u64,
    pub ns: u64,
    pub lost_core_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedFindings {
    pub members: Vec<ArmFindings>,
    pub bed: ArmFindings,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmFindings {
    pub counters: BTreeMap<String, f64>,
    /// Names of [`Validity`].
    pub reasons: Vec<String>,
    pub events: Vec<String>,
}

/// A request that failed. The panel, if there was one, is ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedFailure {
    /// The member that failed, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<usize>,
    pub message: String,
}

impl Hello {
    /// The first line of this program.
    pub fn of_this_program() -> Self {
        let Build { version, rustc, commit, program, debug } = Build::current();
        let features = cfg!(feature = "bpf").then(|| "bpf".to_owned()).into_iter().collect();
        let instructions = Some(instructions());
        let build = ServedBuild { version, rustc, commit, program, debug, features, instructions };
        Self { protocol: PROTOCOL, given_lengths: true, build }
    }
}

/// The instruction sets that the compiler could use anywhere in this program, and whether its own code for vectors is left
/// out.
fn instructions() -> Vec<String> {
    let known = [
        ("fullview_portable", cfg!(fullview_portable)),
        ("sse4.2", cfg!(target_feature = "sse4.2")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("avx2", cfg!(target_feature = "avx2")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("sve", cfg!(target_feature = "sve")),
    ];
    known.into_iter().filter(|(_, used)| *used).map(|(name, _)| name.to_owned()).collect()
}

impl From<ServedArm> for Arm {
    fn from(arm: ServedArm) -> Self {
        match arm {
            ServedArm::Control(control) => Arm::Control(control),
            ServedArm::Member(member) => Arm::Member(member),
        }
    }
}

impl From<Slice> for ServedSlice {
    fn from(slice: Slice) -> Self {
        let Slice { counted, offered, time, lost_core } = slice;
        Self { counted, offered, ns: nanoseconds(time), lost_core_ns: nanoseconds(lost_core) }
    }
}

impl From<ServedSlice> for Slice {
    fn from(slice: ServedSlice) -> Self {
        let ServedSlice { counted, offered, ns, lost_core_ns } = slice;
        let [time, lost_core] = [ns, lost_core_ns].map(Duration::from_nanos);
        Self { counted, offered, time, lost_core }
    }
}

impl ServedPanelFacts {
    pub fn limits(&self) -> SliceLimits {
        let [shortest, longest] = [self.shortest_ns, self.longest_ns].map(Duration::from_nanos);
        SliceLimits { shortest, longest }
    }
}

impl From<Findings> for ArmFindings {
    fn from(findings: Findings) -> Self {
        let Findings { counters, reasons, events } = findings;
        Self { counters, reasons: reasons.into_iter().map(written).collect(), events }
    }
}

impl From<ArmFindings> for Findings {
    /// A reason that this program does not know stands among the events, and the panel does not count.
    fn from(served: ArmFindings) -> Self {
        let ArmFindings { counters, reasons, mut events } = served;
        let unknown = reasons.iter().filter(|reason| read(reason).is_none());
        events
            .extend(unknown.map(|reason| format!("not counted, for a reason of the other build: {reason}")));
        let reasons = reasons.iter().map(|reason| read(reason).unwrap_or(Validity::Refused)).collect();
        Self { counters, reasons, events }
    }
}

/// The name of a reason in messages.
pub fn written(reason: Validity) -> String {
    serde_json::to_value(reason).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

/// The reason with this name.
pub fn read(name: &str) -> Option<Validity> {
    serde_json::from_value(name.into()).ok()
}

/// Whole nanoseconds, of at most 584 years.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &impl Serialize) -> String {
        serde_json::to_string(message).unwrap()
    }

    /// docs/reference/serve-slices.md shows these lines; other builds of the program send and expect them.
    #[test]
    fn the_lines_are_these() {
        let panel = PanelRequest {
            family: "inet".into(),
            campaign_seed: 1,
            seed: 7,
            members: vec![serde_json::json!({ "router": { "algorithm": "dxr" } })],
        };
        assert_eq!(
            line(&Request::Panel(panel)),
            r#"{"panel":{"family":"inet","campaign_seed":1,"seed":7,"members":[{"router":{"algorithm":"dxr"}}]}}"#
        );
        let slice = SliceRequest { arm: ServedArm::Member(0), lead_in_ns: 250_000, length_ns: 500_000 };
        assert_eq!(
            line(&Request::Slice(slice)),
            r#"{"slice":{"arm":{"member":0},"lead_in_ns":250000,"length_ns":500000}}"#
        );
        assert_eq!(line(&Request::End), r#""end""#);
        let member = ServedMember { control: 0, set_aside: None, wrong: None };
        let (shortest_ns, longest_ns) = (50_000, 16_000_000);
        let facts = ServedPanelFacts {
            controls: 1,
            subtracts: true,
            paced: false,
            shortest_ns,
            longest_ns,
            members: vec![member],
        };
        assert_eq!(
            line(&Reply::Ready(facts)),
            r#"{"ready":{"controls":1,"subtracts":true,"shortest_ns":50000,"longest_ns":16000000,"members":[{"control":0}]}}"#
        );
        let slice = ServedSlice { counted: 9_600, offered: 9_600, ns: 500_120, lost_core_ns: 0 };
        assert_eq!(
            line(&Reply::Slice(slice)),
            r#"{"slice":{"counted":9600,"offered":9600,"ns":500120,"lost_core_ns":0}}"#
        );
    }

    #[test]
    fn fields_of_a_later_version_are_ignored() {
        let hello = r#"{"hello":{"protocol":1,"version":"9.0.0","rustc":null,"commit":null,"debug":false,"features":[],"more":3}}"#;
        assert!(matches!(serde_json::from_str(hello), Ok(Reply::Hello(Hello { protocol: 1, .. }))));
    }

    #[test]
    fn reasons_keep_their_names_and_an_unknown_one_still_counts_against_the_panel() {
        let known = Findings { reasons: vec![Validity::NoisyCores], ..Findings::default() };
        let served = ArmFindings::from(known.clone());
        assert_eq!(served.reasons, ["noisy_cores"]);
        assert_eq!(Findings::from(served), known);
        let unknown = ArmFindings { reasons: vec!["too_hot".into()], ..ArmFindings::default() };
        let read = Findings::from(unknown);
        assert_eq!(read.reasons, [Validity::Refused]);
        assert!(read.events[0].contains("too_hot"), "{:?}", read.events);
    }
}
