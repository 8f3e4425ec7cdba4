//! What the program in the kernel decides about a packet.

use std::fmt::{self, Display};

use crate::verdict::{LimitedReason, Punt, Reason, Verdict};

/// What the program decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramVerdict {
    /// It was handed to the driver of its egress device.
    Forward,
    /// It was not forwarded.
    Refuse(XdpReason),
}

impl ProgramVerdict {
    /// Why the packet goes no further, if it does not.
    pub fn discard(self) -> Option<XdpReason> {
        match self {
            ProgramVerdict::Refuse(reason) if reason.discards() => Some(reason),
            ProgramVerdict::Refuse(_) | ProgramVerdict::Forward => None,
        }
    }
}

impl Display for ProgramVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramVerdict::Forward => f.write_str("forward"),
            ProgramVerdict::Refuse(reason) if reason.discards() => write!(f, "drop: {reason}"),
            ProgramVerdict::Refuse(reason) => write!(f, "to the kernel: {reason}"),
        }
    }
}

/// Why the program did not forward a packet, in the order of `enum reason` in `bpf/forward.c`. For some reasons it drops
/// packets ([`XdpReason::drops`]), for all others it passes them to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum XdpReason {
    /// The frame ends before the end of its headers.
    TooShort = 1,
    /// No interface has this device and VLAN.
    NoInterface,
    /// The destination MAC address is another station's or a group's.
    OtherStation,
    /// It is neither IPv4 nor IPv6, for example ARP.
    NotIp,
    /// It has a wrong version, IPv4 options, or impossible lengths.
    Header,
    /// The checksum of the IPv4 header is wrong.
    Checksum,
    /// Its source or destination is a special address: loopback, link-local, multicast.
    SpecialAddress,
    /// TTL or hop limit is used up.
    TtlExpired,
    /// The table has no route to the destination.
    NoRoute,
    /// The destination is an address of this host.
    Local,
    /// The MAC address of the neighbour is not known, or its link is down.
    NoNeighbor,
    /// The route rejects packets, and the kernel answers their senders: unreachable or prohibit.
    Discarded,
    /// It is longer than the MTU of the link.
    TooBig,
    /// The driver left no room for a VLAN tag.
    NoHeadroom,
    /// The ingress interface does not forward its family.
    NotForwarding,
    /// It failed the source check, and was dropped.
    SourceCheck,
    /// The route is a blackhole, and the packet was dropped.
    Blackhole,
    /// The driver of the egress interface takes no frames from XDP programs.
    NoRedirect,
    /// The process that keeps the tables up to date has not reported for a second: it is stopped or hangs.
    RouterStalled,
    /// Its source is to be checked, and only the kernel uses the way back to it.
    WayBack,
    /// The destination is the address of all stations of a network.
    Broadcast,
    /// A rule of policy routing leaves it to the kernel.
    PolicyRule,
    /// The frame is in several buffers, and the driver of the egress interface takes no such frames from XDP programs.
    NoMultiBuffer,
    /// The link that it would leave by has failed, and the tables have not followed yet.
    LinkFailed,
    /// The table has no route to the destination, and the kernel has got as many such packets as it should.
    NoRouteLimited,
    /// TTL or hop limit is used up, and the kernel has got as many such packets as it should.
    TtlExpiredLimited,
    /// The route rejects packets, and the kernel has got as many such packets as it should.
    DiscardedLimited,
}

impl XdpReason {
    /// All reasons in the order of their counters.
    pub const ALL: [XdpReason; 27] = [
        XdpReason::TooShort,
        XdpReason::NoInterface,
        XdpReason::OtherStation,
        XdpReason::NotIp,
        XdpReason::Header,
        XdpReason::Checksum,
        XdpReason::SpecialAddress,
        XdpReason::TtlExpired,
        XdpReason::NoRoute,
        XdpReason::Local,
        XdpReason::NoNeighbor,
        XdpReason::Discarded,
        XdpReason::TooBig,
        XdpReason::NoHeadroom,
        XdpReason::NotForwarding,
        XdpReason::SourceCheck,
        XdpReason::Blackhole,
        XdpReason::NoRedirect,
        XdpReason::RouterStalled,
        XdpReason::WayBack,
        XdpReason::Broadcast,
        XdpReason::PolicyRule,
        XdpReason::NoMultiBuffer,
        XdpReason::LinkFailed,
        XdpReason::NoRouteLimited,
        XdpReason::TtlExpiredLimited,
        XdpReason::DiscardedLimited,
    ];

    /// Whether the program drops packets for this reason.
    pub const fn drops(self) -> bool {
        matches!(self, XdpReason::SourceCheck | XdpReason::Blackhole) || self.exceeds().is_some()
    }

    /// The limit that the packet exceeds, if the program drops it for that.
    pub const fn exceeds(self) -> Option<LimitedReason> {
        match self {
            XdpReason::NoRouteLimited => Some(LimitedReason::NoRoute),
            XdpReason::TtlExpiredLimited => Some(LimitedReason::TtlExpired),
            XdpReason::DiscardedLimited => Some(LimitedReason::Discarded),
            _ => None,
        }
    }

    /// The reason of the packets that the program passes within this limit; `None` if it passes all.
    pub const fn within(limit: LimitedReason) -> Option<XdpReason> {
        match limit {
            LimitedReason::NoRoute => Some(XdpReason::NoRoute),
            LimitedReason::TtlExpired => Some(XdpReason::TtlExpired),
            LimitedReason::Discarded => Some(XdpReason::Discarded),
            LimitedReason::NoNeighbor | LimitedReason::TooBig => None,
        }
    }

    /// The reason of this number.
    pub fn numbered(number: u8) -> Option<XdpReason> {
        XdpReason::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether the packet goes no further: the program drops it, or the kernel does after it has answered the sender.
    pub const fn discards(self) -> bool {
        use XdpReason::{Checksum, Discarded, NoRoute, TooShort, TtlExpired};
        self.drops() || matches!(self, TooShort | Checksum | TtlExpired | NoRoute | Discarded)
    }

    /// Whether the loop of a worker may come to this verdict about a packet that the program refuses for this reason. The
    /// loop does not know what only the program lacks.
    pub fn fits(self, verdict: Verdict) -> bool {
        use XdpReason::{
            LinkFailed, NoHeadroom, NoMultiBuffer, NoRedirect, NotForwarding, PolicyRule, RouterStalled,
            TooBig, WayBack,
        };
        match self {
            // The program follows fewer rules of policy routing for a packet.
            PolicyRule => true,
            LinkFailed | NoHeadroom | NoMultiBuffer | NoRedirect | NotForwarding | RouterStalled | TooBig
            | WayBack => true,
            XdpReason::Checksum => verdict == Verdict::Drop(Reason::Checksum),
            XdpReason::TtlExpired | XdpReason::TtlExpiredLimited => {
                matches!(verdict, Verdict::Drop(Reason::TtlExpired | Reason::HopLimitExpired))
            }
            XdpReason::NoRoute | XdpReason::NoRouteLimited => verdict == Verdict::Drop(Reason::NoRoute),
            XdpReason::Local => verdict == Verdict::Punt(Punt::Local),
            XdpReason::Discarded | XdpReason::DiscardedLimited => {
                matches!(verdict, Verdict::Drop(Reason::Unreachable | Reason::Prohibited))
            }
            XdpReason::SourceCheck => verdict == Verdict::Drop(Reason::SourceCheck),
            XdpReason::Blackhole => verdict == Verdict::Drop(Reason::Blackhole),
            _ => verdict != Verdict::Forward,
        }
    }

    /// The name telemetry uses.
    pub const fn name(self) -> &'static str {
        match self {
            XdpReason::TooShort => "too_short",
            XdpReason::NoInterface => "no_interface",
            XdpReason::OtherStation => "other_station",
            XdpReason::NotIp => "not_ip",
            XdpReason::Header => "header",
            XdpReason::Checksum => "checksum",
            XdpReason::SpecialAddress => "special_address",
            XdpReason::TtlExpired => "ttl_expired",
            XdpReason::NoRoute => "no_route",
            XdpReason::Local => "local",
            XdpReason::NoNeighbor => "no_neighbor",
            XdpReason::Discarded => "discarded",
            XdpReason::TooBig => "too_big",
            XdpReason::NoHeadroom => "no_headroom",
            XdpReason::NotForwarding => "not_forwarding",
            XdpReason::SourceCheck => "source_check",
            XdpReason::Blackhole => "blackhole",
            XdpReason::NoRedirect => "no_redirect",
            XdpReason::RouterStalled => "router_stalled",
            XdpReason::WayBack => "way_back",
            XdpReason::Broadcast => "broadcast",
            XdpReason::PolicyRule => "policy_rule",
            XdpReason::NoMultiBuffer => "no_multi_buffer",
            XdpReason::LinkFailed => "link_failed",
            XdpReason::NoRouteLimited => "no_route_limited",
            XdpReason::TtlExpiredLimited => "ttl_expired_limited",
            XdpReason::DiscardedLimited => "discarded_limited",
        }
    }
}

impl Display for XdpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_by_their_numbers() {
        for reason in XdpReason::ALL {
            assert_eq!(XdpReason::numbered(reason as u8), Some(reason));
        }
        assert_eq!([0, 1 + XdpReason::ALL.len() as u8, 255].map(XdpReason::numbered), [None; 3]);
    }

    #[test]
    fn what_the_program_drops_is_discarded_by_the_loop_too() {
        for (reason, verdict, fits) in [
            (XdpReason::Blackhole, Verdict::Drop(Reason::Blackhole), true),
            (XdpReason::Blackhole, Verdict::Drop(Reason::NoRoute), false),
            (XdpReason::NoNeighbor, Verdict::Punt(Punt::Glean), true),
            (XdpReason::NoNeighbor, Verdict::Forward, false),
            (XdpReason::NoRedirect, Verdict::Forward, true),
        ] {
            assert_eq!(reason.fits(verdict), fits, "{reason}: {verdict}");
        }
        assert!(XdpReason::ALL.into_iter().all(|reason| !reason.drops() || reason.discards()));
    }
}
