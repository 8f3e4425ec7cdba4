//! How a rejected packet is answered.

use super::parts::Language;
use crate::address::Family;
use crate::packet::protocol::TCP;
use crate::packet::{Fragment, Packet, Transport};
use crate::rule::RejectWith;
use crate::verdict::{DropReason, Reject, Verdict};

/// The answer that a rule gives to this packet; without one it is only dropped. An ICMP error is never answered (RFC 1122,
/// section 3.2.2), nor a reset, nor a later fragment. ipfw answers ICMP queries, pf does not (`pf_return`).
pub(super) fn answer(with: &RejectWith, language: Language, packet: &Packet) -> Verdict {
    answer_of(with, language, packet).map_or(Verdict::Drop(DropReason::Rule), Verdict::Reject)
}

fn answer_of(with: &RejectWith, language: Language, packet: &Packet) -> Option<Reject> {
    use crate::packet::protocol::tcp::RST;
    if matches!(packet.fragment, Fragment::Later { .. }) {
        return None;
    }
    let resets = match packet.family {
        Family::Inet => with.reset,
        Family::Inet6 => with.reset6,
    };
    match &packet.transport {
        Transport::Tcp(segment) if resets => (segment.flags & RST == 0).then_some(Reject::TcpReset),
        Transport::Icmp(message) if !message.is_query || language == Language::Pf => None,
        _ if resets && packet.protocol == TCP => None,
        _ => match packet.family {
            Family::Inet => with.icmp.map(|code| Reject::Icmp { code, mtu: with.mtu }),
            Family::Inet6 => with.icmp6.map(|code| Reject::Icmp6 { code }),
        },
    }
}
