//! What becomes of a packet, and why. Each reason is the index of a counter.

use std::fmt::{self, Display};

use fullview_filter::verdict::{DropReason, Reject};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It leaves by the port in its slot.
    Forward,
    /// It is discarded.
    Drop(Reason),
    /// The slow path handles it.
    Punt(Punt),
    /// A rule of the filter discards it, and its sender gets an answer.
    Reject(RejectAnswer),
}

// The slot has two bytes for it, which alignment would leave unused.
const _: () = assert!(size_of::<Verdict>() == 2);

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Forward => f.write_str("forward"),
            Verdict::Drop(reason) => write!(f, "drop: {reason}"),
            Verdict::Punt(punt) => write!(f, "punt: {punt}"),
            Verdict::Reject(answer) => write!(f, "drop: {}, answered by {answer}", Reason::FilterRule),
        }
    }
}

/// The answer to a packet that the filter rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RejectAnswer(u8);

impl RejectAnswer {
    /// A segment of TCP that ends the connection.
    pub const RESET: RejectAnswer = RejectAnswer(u8::MAX);

    /// Destination Unreachable of ICMP or ICMPv6, whichever the packet asks for, with this code.
    pub const fn unreachable(code: u8) -> RejectAnswer {
        RejectAnswer(code)
    }

    /// The code of Destination Unreachable; `None` for [`Self::RESET`].
    pub const fn code(self) -> Option<u8> {
        if self.0 == Self::RESET.0 { None } else { Some(self.0) }
    }
}

impl From<&Reject> for RejectAnswer {
    fn from(reject: &Reject) -> RejectAnswer {
        match reject {
            Reject::TcpReset => RejectAnswer::RESET,
            Reject::Icmp { code, .. } | Reject::Icmp6 { code } => RejectAnswer::unreachable(*code),
        }
    }
}

impl Display for RejectAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code() {
            None => f.write_str("a TCP reset"),
            Some(code) => write!(f, "ICMP unreachable, code {code}"),
        }
    }
}

/// Defines an enum of counter indices, each with the name that telemetry uses.
macro_rules! counters {
    ($(#[$doc:meta])* $type:ident { $($(#[$meaning:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$meaning])* $variant,)* }

        impl $type {
            /// All variants in the order of their counters.
            pub const ALL: &[$type] = &[$($type::$variant,)*];
            /// The number of variants.
            pub const COUNT: usize = $type::ALL.len();

            /// The name telemetry uses.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }

            /// The index of its counter.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

counters! {
    /// Why a packet was dropped.
    Reason {
        /// The frame ends before the end of its headers.
        TooShort = "too_short",
        /// No interface belongs to the port that received it.
        UnknownPort = "unknown_port",
        /// The ingress or the egress interface is down.
        InterfaceDown = "interface_down",
        /// Its destination MAC address belongs to another station.
        NotOurMac = "not_our_mac",
        /// A unicast packet in a broadcast or multicast frame (RFC 1812, section 5.3.4).
        LinkBroadcast = "link_broadcast",
        /// The version field contradicts the frame's type.
        BadVersion = "bad_version",
        /// An IPv4 header length below 20 bytes or beyond the packet.
        HeaderLength = "header_length",
        /// A length field below the header's length or beyond the frame.
        TotalLength = "total_length",
        /// The checksum of the IPv4 header is wrong.
        Checksum = "checksum",
        /// An IPv4 option asks for a route of the sender's choice (RFC 7126, sections 4.3 and 4.4).
        SourceRoute = "source_route",
        /// No host can have sent from this address.
        MartianSource = "martian_source",
        /// No host can have this destination address.
        MartianDestination = "martian_destination",
        /// There is no route back to its source, or that route leaves by another interface (RFC 3704).
        SourceCheck = "source_check",
        /// To the broadcast address of a network behind this router (RFC 2644).
        DirectedBroadcast = "directed_broadcast",
        /// The IPv4 TTL is used up.
        TtlExpired = "ttl_expired",
        /// The IPv6 hop limit is used up.
        HopLimitExpired = "hop_limit_expired",
        /// The table has no route to the destination.
        NoRoute = "no_route",
        /// A blackhole route: no ICMP error is sent.
        Blackhole = "blackhole",
        /// An unreachable route.
        Unreachable = "unreachable",
        /// A prohibit route.
        Prohibited = "prohibited",
        /// The next hop of the route has no adjacency.
        NoAdjacency = "no_adjacency",
        /// It is longer than the MTU of the egress link and must not be fragmented.
        TooBig = "too_big",
        /// It is longer than the MTU of the egress link, and the sender lets routers fragment it.
        NeedsFragments = "needs_fragments",
        /// The egress port had no room for it.
        EgressFull = "egress_full",
        /// The frame that a port received is longer than a slot.
        FrameTooLong = "frame_too_long",
        /// The frame that a port received holds several packets, as GRO makes them, and the port cannot cut it.
        SeveralPackets = "several_packets",
        /// The checksum or the tag that the kernel left to finish lies outside of the frame that a port received.
        FrameDamaged = "frame_damaged",
        /// It waited at a port, received or to be sent, for more than a second: the router was stopped or had no core, or the link was
        /// down.
        Stale = "stale",
        /// The egress port can never send it, mostly because of its length.
        Unsendable = "unsendable",
        /// The kernel dropped it behind the egress port: an egress rule, or a full queue.
        DroppedByKernel = "dropped_by_kernel",
        /// The worker that has the states of its flow had no room for it, or its port was taken out before it came there.
        HandOver = "hand_over",
        /// A rule of the filter, or its default.
        FilterRule = "filter_rule",
        /// It contradicts the state of the filter that it belongs to, for example by a sequence number outside the window.
        FilterState = "filter_state",
        /// The filter's table of states is full.
        FilterTableFull = "filter_table_full",
        /// The rule of the filter has as many states as it may have.
        FilterRuleLimit = "filter_rule_limit",
        /// Its source has as many states as the filter lets it have.
        FilterSourceLimit = "filter_source_limit",
        /// The filter found no free port for a translation.
        FilterNoPort = "filter_no_port",
        /// The filter cannot read its headers, it has options that every router reads, or its next hop is not known yet.
        FilterUnreadable = "filter_unreadable",
    }
}

impl From<DropReason> for Reason {
    fn from(reason: DropReason) -> Reason {
        match reason {
            DropReason::Rule => Reason::FilterRule,
            DropReason::State => Reason::FilterState,
            DropReason::TableFull => Reason::FilterTableFull,
            DropReason::RuleLimit => Reason::FilterRuleLimit,
            DropReason::SourceLimit => Reason::FilterSourceLimit,
            DropReason::NoPort => Reason::FilterNoPort,
        }
    }
}

impl Reason {
    /// Whether an interface counts it of packets that were to leave by it. The others came in by the interface; so did
    /// those with [`Reason::InterfaceDown`] for an interface that the view has as down already.
    pub const fn is_of_output(self) -> bool {
        matches!(
            self,
            Reason::EgressFull | Reason::Unsendable | Reason::DroppedByKernel | Reason::InterfaceDown
        )
    }

    /// Whether a filter dropped it, of which routes and interfaces know nothing.
    pub const fn is_of_filter(self) -> bool {
        matches!(
            self,
            Reason::FilterRule
                | Reason::FilterState
                | Reason::FilterTableFull
                | Reason::FilterRuleLimit
                | Reason::FilterSourceLimit
                | Reason::FilterNoPort
                | Reason::FilterUnreadable
        )
    }

    /// Whether the slow path has something to do for the packet: an ICMP error to its sender (RFC 1812, section 4.3; RFC
    /// 4443, section 3), or fragments.
    pub const fn is_answered(self) -> bool {
        matches!(
            self,
            Reason::TtlExpired
                | Reason::HopLimitExpired
                | Reason::NoRoute
                | Reason::Unreachable
                | Reason::Prohibited
                | Reason::NoAdjacency
                | Reason::TooBig
                | Reason::NeedsFragments
        )
    }
}

counters! {
    /// Why a packet left the forwarding path for the slow path.
    Punt {
        /// An ARP packet.
        Arp = "arp",
        /// Neither IPv4 nor IPv6 nor ARP.
        NotIp = "not_ip",
        /// No interface of the port has its VLAN.
        OtherVlan = "other_vlan",
        /// The ingress interface does not forward its family.
        NotForwarding = "not_forwarding",
        /// Its destination is a group of the link, as routing and neighbour protocols use them.
        LinkMulticast = "link_multicast",
        /// Its destination is a group beyond the link; there is no multicast routing here.
        Multicast = "multicast",
        /// Its destination is the broadcast address of the link.
        Broadcast = "broadcast",
        /// Its source or destination is a link-local address.
        LinkLocal = "link_local",
        /// It has an IPv4 option that every router on the path reads, or damaged options.
        Options = "options",
        /// Its destination is an address of this router.
        Local = "local",
        /// Its source is to be checked, and only the kernel knows the way back to it.
        WayBack = "way_back",
        /// Its next hop is on a link of this router, and the MAC address is not known yet.
        Glean = "glean",
        /// A rule of policy routing leaves it to the slow path.
        PolicyRule = "policy_rule",
    }
}

counters! {
    /// Why the host gets a packet of which nothing becomes except an ICMP error, or the resolution of a neighbour. A flood of
    /// such packets must not keep the host from its other work, so their rate is limited.
    LimitedReason {
        /// The table has no route to the destination.
        NoRoute = "no_route",
        /// TTL or hop limit is used up.
        TtlExpired = "ttl_expired",
        /// The route rejects packets: unreachable or prohibit.
        Discarded = "discarded",
        /// The MAC address of the neighbour is not known.
        NoNeighbor = "no_neighbor",
        /// It is longer than the MTU of the egress link and must not be fragmented.
        TooBig = "too_big",
    }
}

impl LimitedReason {
    /// `None` if the host may do more with packets of this verdict.
    pub const fn of(verdict: Verdict) -> Option<LimitedReason> {
        match verdict {
            Verdict::Drop(Reason::NoRoute) => Some(LimitedReason::NoRoute),
            Verdict::Drop(Reason::TtlExpired | Reason::HopLimitExpired) => Some(LimitedReason::TtlExpired),
            Verdict::Drop(Reason::Unreachable | Reason::Prohibited) => Some(LimitedReason::Discarded),
            Verdict::Drop(Reason::TooBig) => Some(LimitedReason::TooBig),
            Verdict::Punt(Punt::Glean) => Some(LimitedReason::NoNeighbor),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn indices_are_dense_and_names_differ() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
        }
        let names: HashSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::COUNT);
        for reason in DropReason::ALL {
            assert_eq!(Reason::from(reason).name(), reason.name());
            assert!(Reason::from(reason).is_of_filter());
        }
        assert_eq!(Verdict::Drop(Reason::NoRoute).to_string(), "drop: no_route");
        assert_eq!(Verdict::Punt(Punt::Arp).to_string(), "punt: arp");
    }
}
