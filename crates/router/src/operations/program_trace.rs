//! What a trace says about packets of the program in the kernel.

use fullview_plane::explain::{Explanation, explain};
use fullview_plane::observed::ObservedPacket;
use fullview_plane::program_verdict::{ProgramVerdict, XdpReason};
use fullview_plane::verdict::Verdict;

use super::kernel_names::{KernelNames, interface_name};
use crate::control::status::NotedPacket;
use crate::events::micros;
use crate::mirror::Mirror;

/// Explains a packet by the router's present state, which may have changed since the packet came in, and compares that with
/// what the program did.
pub fn packet(mirror: &Mirror, note: &ObservedPacket) -> NotedPacket {
    let view = mirror.views().current();
    let explanation = explain(&view, &KernelNames(mirror), note.port, &note.frame);
    let was_resolved = was_resolved(&explanation, note);
    let disagreement = explanation.disagreement_with_program(note).filter(|_| !was_resolved);
    let mut steps: Vec<String> = explanation.steps.iter().map(ToString::to_string).collect();
    if was_resolved {
        steps.push("this is the path now; when the packet came in its neighbour was not known, and the kernel got it".into());
    }
    if explanation.verdict == Verdict::Forward && !was_resolved && note.verdict != ProgramVerdict::Forward {
        steps.push(format!(
            "this is the path by the tables; the program did not send the packet: {}",
            note.verdict
        ));
    }
    steps.extend(unlike(note));
    NotedPacket {
        at: micros(note.at),
        interface: interface_name(&view, note.port, &note.frame),
        frame: note.frame.iter().map(|byte| format!("{byte:02x}")).collect(),
        frame_len: note.frame_len,
        verdict: note.verdict.to_string(),
        disagreement,
        steps,
    }
}

/// Whether the program lacked a neighbour that is known by now.
fn was_resolved(explanation: &Explanation, note: &ObservedPacket) -> bool {
    note.verdict == ProgramVerdict::Refuse(XdpReason::NoNeighbor) && explanation.verdict == Verdict::Forward
}

/// Why the steps above may not be those of the program.
fn unlike(note: &ObservedPacket) -> Option<String> {
    if note.is_segmented {
        return Some(
            "it is several segments in one frame; the program compared the length of each with the link's"
                .into(),
        );
    }
    let (copied, len) = (note.frame.len(), note.frame_len);
    note.is_cut().then(|| format!("these are the steps of its first {copied} of {len} bytes"))
}
