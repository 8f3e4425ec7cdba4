//! Compares an explanation with what the program in the kernel did.

use super::Explanation;
use crate::observed::ObservedPacket;
use crate::program_verdict::ProgramVerdict;

impl Explanation {
    /// How the program's verdict differs from the explanation, if it does. Frames that the explanation does not know whole
    /// are not compared: those of which only the beginning was copied, and several segments in one.
    pub fn disagreement_with_program(&self, packet: &ObservedPacket) -> Option<String> {
        if packet.is_cut() || packet.is_segmented {
            return None;
        }
        let left = self.departure.as_ref().map(|(port, _)| *port);
        match packet.verdict {
            ProgramVerdict::Refuse(reason) if reason.fits(self.verdict) => None,
            ProgramVerdict::Forward if left.is_some() && left == packet.egress => None,
            ProgramVerdict::Forward if left.is_some() => {
                Some(format!("it left by {}, not {}", port(packet.egress), port(left)))
            }
            verdict => Some(format!("the program's verdict was {verdict}, not {}", self.verdict)),
        }
    }
}

fn port(number: Option<u16>) -> String {
    number.map_or_else(|| "a device without a port".into(), |number| format!("port {number}"))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::program_verdict::XdpReason;
    use crate::verdict::{Reason, Verdict};

    fn packet(verdict: ProgramVerdict, egress: Option<u16>) -> ObservedPacket {
        ObservedPacket {
            at: SystemTime::UNIX_EPOCH,
            port: 0,
            verdict,
            egress,
            frame_len: 60,
            frame: vec![0; 60],
            is_segmented: false,
        }
    }

    #[test]
    fn verdicts_and_ports_are_compared() {
        let sent = |port| Explanation {
            steps: Vec::new(),
            verdict: Verdict::Forward,
            departure: Some((port, Vec::new())),
        };
        let dropped =
            Explanation { steps: Vec::new(), verdict: Verdict::Drop(Reason::NoRoute), departure: None };
        let no_route = ProgramVerdict::Refuse(XdpReason::NoRoute);
        let forwarded = packet(ProgramVerdict::Forward, Some(1));
        assert_eq!(sent(1).disagreement_with_program(&forwarded), None);
        assert_eq!(
            sent(2).disagreement_with_program(&forwarded).as_deref(),
            Some("it left by port 1, not port 2")
        );
        assert_eq!(dropped.disagreement_with_program(&packet(no_route, None)), None);
        assert_eq!(
            sent(1).disagreement_with_program(&packet(no_route, None)).as_deref(),
            Some("the program's verdict was drop: no_route, not forward")
        );
        let text = dropped.disagreement_with_program(&forwarded);
        assert_eq!(text.as_deref(), Some("the program's verdict was forward, not drop: no_route"));
        let segments = ObservedPacket { is_segmented: true, ..forwarded };
        assert_eq!(dropped.disagreement_with_program(&segments), None);
    }
}
