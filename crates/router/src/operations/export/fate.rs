//! What became of a sampled packet, in the numbers of sFlow and of IPFIX.

use fullview_plane::program_verdict::{ProgramVerdict, XdpReason};
use fullview_plane::sample::{Decision, PacketSample};
use fullview_plane::verdict::{Punt, Reason, Verdict};

use super::port::SampledPorts;
use crate::telemetry::ipfix::ForwardingStatus;
use crate::telemetry::sflow::SampledOutput;

/// sFlow's reason for packets that are discarded for another one.
const UNKNOWN_DISCARD: u32 = 256;

/// The interface that a forwarded packet leaves by.
pub fn egress(ports: &SampledPorts, sample: &PacketSample) -> Option<u32> {
    sample.egress.and_then(|port| ports.index(port))
}

pub fn output(ports: &SampledPorts, sample: &PacketSample) -> SampledOutput {
    match sample.decision {
        Decision::Loop(Verdict::Forward) | Decision::Program(ProgramVerdict::Forward) => {
            egress(ports, sample).map_or(SampledOutput::Unknown, SampledOutput::Interface)
        }
        Decision::Loop(verdict) => output_of_loop(verdict),
        Decision::Program(ProgramVerdict::Refuse(reason)) => output_of_program(reason),
    }
}

fn output_of_loop(verdict: Verdict) -> SampledOutput {
    match verdict {
        Verdict::Drop(reason) => SampledOutput::Discarded(discard_code(reason)),
        Verdict::Reject(_) => SampledOutput::Discarded(discard_code(Reason::FilterRule)),
        Verdict::Punt(Punt::Local) => SampledOutput::Device,
        Verdict::Punt(_) | Verdict::Forward => SampledOutput::Unknown,
    }
}

fn output_of_program(reason: XdpReason) -> SampledOutput {
    match reason {
        XdpReason::NoRoute | XdpReason::NoRouteLimited => {
            SampledOutput::Discarded(discard_code(Reason::NoRoute))
        }
        XdpReason::TtlExpired | XdpReason::TtlExpiredLimited => {
            SampledOutput::Discarded(discard_code(Reason::TtlExpired))
        }
        XdpReason::Local => SampledOutput::Device,
        reason if reason.discards() => SampledOutput::Discarded(UNKNOWN_DISCARD),
        _ => SampledOutput::Unknown,
    }
}

/// Why a packet is discarded, as sFlow numbers reasons: codes of Destination Unreachable below 256, its own from there on.
fn discard_code(reason: Reason) -> u32 {
    match reason {
        Reason::NoRoute => 0,
        Reason::Unreachable | Reason::NoAdjacency => 1,
        Reason::Prohibited => 13,
        Reason::TtlExpired | Reason::HopLimitExpired => 257,
        Reason::TooBig => 262,
        reason if reason.is_of_filter() => 258,
        _ => UNKNOWN_DISCARD,
    }
}

pub fn status(decision: Decision) -> ForwardingStatus {
    match decision {
        Decision::Loop(Verdict::Forward) | Decision::Program(ProgramVerdict::Forward) => {
            ForwardingStatus::Forwarded
        }
        Decision::Loop(Verdict::Drop(reason)) => status_of_drop(reason),
        Decision::Loop(Verdict::Reject(_)) => ForwardingStatus::AclDeny,
        Decision::Loop(Verdict::Punt(Punt::Local)) => ForwardingStatus::ConsumedForUs,
        Decision::Loop(Verdict::Punt(_)) => ForwardingStatus::Consumed,
        Decision::Program(ProgramVerdict::Refuse(reason)) => status_of_program(reason),
    }
}

fn status_of_drop(reason: Reason) -> ForwardingStatus {
    match reason {
        Reason::NoRoute | Reason::Unreachable => ForwardingStatus::Unroutable,
        Reason::NoAdjacency => ForwardingStatus::Adjacency,
        Reason::TooBig | Reason::NeedsFragments => ForwardingStatus::FragmentationNeeded,
        Reason::Checksum => ForwardingStatus::BadChecksum,
        Reason::TotalLength => ForwardingStatus::BadTotalLength,
        Reason::HeaderLength => ForwardingStatus::BadHeaderLength,
        Reason::TtlExpired | Reason::HopLimitExpired => ForwardingStatus::BadTtl,
        Reason::SourceCheck => ForwardingStatus::ReversePath,
        reason if reason.is_of_filter() => ForwardingStatus::AclDeny,
        _ => ForwardingStatus::Dropped,
    }
}

/// What the program passes to the kernel for other reasons, the kernel may forward.
fn status_of_program(reason: XdpReason) -> ForwardingStatus {
    match reason {
        XdpReason::NoRoute | XdpReason::NoRouteLimited => ForwardingStatus::Unroutable,
        XdpReason::TtlExpired | XdpReason::TtlExpiredLimited => ForwardingStatus::BadTtl,
        XdpReason::Checksum => ForwardingStatus::BadChecksum,
        XdpReason::SourceCheck => ForwardingStatus::ReversePath,
        XdpReason::Local => ForwardingStatus::ConsumedForUs,
        reason if reason.discards() => ForwardingStatus::Dropped,
        _ => ForwardingStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_numbers_of_sflow() {
        let codes =
            [Reason::NoRoute, Reason::TtlExpired, Reason::FilterState, Reason::Checksum].map(discard_code);
        assert_eq!(codes, [0, 257, 258, 256]);
        let outputs = [XdpReason::NoRoute, XdpReason::Blackhole, XdpReason::NotIp].map(output_of_program);
        let wanted = [SampledOutput::Discarded(0), SampledOutput::Discarded(256), SampledOutput::Unknown];
        assert_eq!(outputs, wanted);
    }

    #[test]
    fn what_the_router_drops_has_a_status_of_dropped_packets() {
        for reason in Reason::ALL {
            let number = status(Decision::Loop(Verdict::Drop(*reason))) as u8;
            assert!((128..192).contains(&number), "{reason}: {number}");
        }
        for reason in XdpReason::ALL {
            let status = status(Decision::Program(ProgramVerdict::Refuse(reason))) as u8;
            assert_eq!((128..192).contains(&status), reason.discards(), "{reason}: {status}");
        }
    }
}
