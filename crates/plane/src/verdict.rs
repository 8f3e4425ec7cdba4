//! What becomes of a packet, and why: each reason is the index of a counter.

use std::fmt::{self, Display};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It goes out by the port in its slot.
    Forward,
    /// It goes nowhere.
    Drop(Reason),
    /// It is not for the forwarding path to answer.
    Punt(Punt),
}

// It travels in the packet's slot, in room that alignment left.
const _: () = assert!(size_of::<Verdict>() == 2);

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Forward => f.write_str("forward"),
            Verdict::Drop(reason) => write!(f, "drop: {reason}"),
            Verdict::Punt(punt) => write!(f, "punt: {punt}"),
        }
    }
}

/// An enum of counter indices: each with its name, as telemetry writes it, and its meaning.
macro_rules! counters {
    ($(#[$doc:meta])* $type:ident { $($(#[$meaning:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$meaning])* $variant,)* }

        impl $type {
            /// Each of them, in the order of their counters.
            pub const ALL: &[$type] = &[$($type::$variant,)*];
            /// How many there are.
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
        /// The frame ends before its headers do.
        TooShort = "too_short",
        /// It came in by a port without an interface.
        UnknownPort = "unknown_port",
        /// It came in by an interface that is down, or its way out is one.
        InterfaceDown = "interface_down",
        /// Its destination MAC address is another station's.
        NotOurMac = "not_our_mac",
        /// A unicast packet in a broadcast or multicast frame (RFC 1812, section 5.3.4).
        LinkBroadcast = "link_broadcast",
        /// The version field contradicts the frame's type.
        BadVersion = "bad_version",
        /// An IPv4 header length below 20 bytes or beyond the packet.
        HeaderLength = "header_length",
        /// A length field below the header's length or beyond the frame.
        TotalLength = "total_length",
        /// The IPv4 header is damaged.
        Checksum = "checksum",
        /// An IPv4 option asks for a route of the sender's choice (RFC 7126, sections 4.3 and 4.4).
        SourceRoute = "source_route",
        /// No host can have sent from this address.
        MartianSource = "martian_source",
        /// No router may forward to this address.
        MartianDestination = "martian_destination",
        /// The way back to its source is none, or does not lead out by the interface it came in by (RFC 3704).
        SourceCheck = "source_check",
        /// To the broadcast address of a network behind this router (RFC 2644).
        DirectedBroadcast = "directed_broadcast",
        /// IPv4 TTL used up.
        TtlExpired = "ttl_expired",
        /// IPv6 hop limit used up.
        HopLimitExpired = "hop_limit_expired",
        /// The table has no route to the destination.
        NoRoute = "no_route",
        /// The route says: drop it and tell nobody.
        Blackhole = "blackhole",
        /// The route says: cannot be reached.
        Unreachable = "unreachable",
        /// The route says: not allowed.
        Prohibited = "prohibited",
        /// Nothing is known about the route's next hop.
        NoAdjacency = "no_adjacency",
        /// Longer than the egress link takes, and not to be fragmented.
        TooBig = "too_big",
        /// Longer than the egress link takes; the sender lets routers fragment it.
        NeedsFragments = "needs_fragments",
        /// The egress port did not take it.
        EgressFull = "egress_full",
    }
}

impl Reason {
    /// Whether the sender may be told by ICMP (RFC 1812, section 4.3; RFC 4443, section 3), or is helped by fragments:
    /// whoever takes what the loop rejects has something to do.
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
    /// Why a packet left the forwarding path for somebody else to answer.
    Punt {
        /// ARP.
        Arp = "arp",
        /// Neither IPv4 nor IPv6 nor ARP.
        NotIp = "not_ip",
        /// Of a VLAN that no interface of the port has.
        OtherVlan = "other_vlan",
        /// It came in by an interface that does not forward its family.
        NotForwarding = "not_forwarding",
        /// To a group of this link, as routing and neighbour protocols use it.
        LinkMulticast = "link_multicast",
        /// To a group beyond this link: there is no multicast routing here.
        Multicast = "multicast",
        /// To all stations of the link.
        Broadcast = "broadcast",
        /// From or to an address that means something on its own link only.
        LinkLocal = "link_local",
        /// With an IPv4 option that every router on the way is to look at.
        Options = "options",
        /// To an address of this router.
        Local = "local",
        /// To a station of a network of this router, whose link address is to be found.
        Glean = "glean",
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
        assert_eq!(Verdict::Drop(Reason::NoRoute).to_string(), "drop: no_route");
        assert_eq!(Verdict::Punt(Punt::Arp).to_string(), "punt: arp");
    }
}
