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
        /// Its destination MAC address is another station's.
        NotOurMac = "not_our_mac",
        /// A unicast packet in a broadcast or multicast frame (RFC 1812, section 5.3.4).
        LinkBroadcast = "link_broadcast",
        /// Its VLAN is not the interface's.
        WrongVlan = "wrong_vlan",
        /// Neither IPv4 nor IPv6 nor ARP.
        NotIp = "not_ip",
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
        /// An address that means something on its own link only.
        LinkLocal = "link_local",
        /// To a group, and there is no multicast routing.
        Multicast = "multicast",
        /// IPv4 TTL used up.
        TtlExpired = "ttl_expired",
        /// IPv6 hop limit used up.
        HopLimitExpired = "hop_limit_expired",
        /// The table has no route to the destination.
        NoRoute = "no_route",
        /// The route's next hop has no link address.
        NoAdjacency = "no_adjacency",
        /// Longer than the egress link takes.
        TooBig = "too_big",
        /// The egress port did not take it.
        EgressFull = "egress_full",
    }
}

counters! {
    /// Why a packet left the forwarding path for somebody else to answer.
    Punt {
        /// ARP.
        Arp = "arp",
        /// To a group of this link, as routing and neighbour protocols use it.
        LinkMulticast = "link_multicast",
        /// To an address of this router.
        Local = "local",
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
