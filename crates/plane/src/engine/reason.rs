//! The reasons for which the XDP program does not forward a packet.

use std::fmt::{self, Display};

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
}

impl XdpReason {
    /// All reasons in the order of their counters.
    pub const ALL: [XdpReason; 22] = [
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
    ];

    /// Whether the program drops packets for this reason.
    pub const fn drops(self) -> bool {
        matches!(self, XdpReason::SourceCheck | XdpReason::Blackhole)
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
        }
    }
}

impl Display for XdpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
