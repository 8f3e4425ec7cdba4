//! IP protocols by the names that FreeBSD's protocols(5) gives them.

use crate::packet::protocol::{ICMP, ICMP6, SCTP, TCP, UDP, UDP_LITE};

/// The first name of a number is the one that is printed.
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", ICMP),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("st2", 5),
    ("tcp", TCP),
    ("cbt", 7),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", UDP),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("skip", 57),
    ("ipv6-icmp", ICMP6),
    ("icmp6", ICMP6),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("mtp", 92),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("carp", 112),
    ("vrrp", 112),
    ("pgm", 113),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", SCTP),
    ("fc", 133),
    ("udplite", UDP_LITE),
    ("mpls-in-ip", 137),
    ("hip", 139),
    ("shim6", 140),
    ("pfsync", 240),
];

pub fn number(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

pub fn name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}
