//! The names of numbers.

/// Protocols of protocols(5) that rules name.
const PROTOCOLS: [(&str, u8); 22] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipencap", 4),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("udp", 17),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("icmp6", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("carp", 112),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("udplite", 136),
];

/// Services of services(5) that rules name often.
const SERVICES: [(&str, u16); 30] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("bootps", 67),
    ("bootpc", 68),
    ("tftp", 69),
    ("http", 80),
    ("pop3", 110),
    ("sunrpc", 111),
    ("auth", 113),
    ("nntp", 119),
    ("ntp", 123),
    ("netbios-ns", 137),
    ("netbios-dgm", 138),
    ("netbios-ssn", 139),
    ("imap", 143),
    ("snmp", 161),
    ("snmptrap", 162),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("isakmp", 500),
    ("syslog", 514),
    ("submission", 587),
    ("imaps", 993),
    ("nfsd", 2049),
];

/// Codes of Destination Unreachable, each at its number.
const UNREACH: [&str; 16] = [
    "net",
    "host",
    "protocol",
    "port",
    "needfrag",
    "srcfail",
    "net-unknown",
    "host-unknown",
    "isolated",
    "net-prohib",
    "host-prohib",
    "tosnet",
    "toshost",
    "filter-prohib",
    "host-precedence",
    "precedence-cutoff",
];

const UNREACH6: [(&str, u8); 4] = [("no-route", 0), ("admin-prohib", 1), ("address", 3), ("port", 4)];

pub(super) const TCP_FLAGS: [(&str, u8); 6] =
    [("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32)];

pub(super) const TOS: [(&str, u8); 5] =
    [("lowdelay", 16), ("throughput", 8), ("reliability", 4), ("mincost", 2), ("congestion", 1)];

const DSCP: [(&str, u8); 23] = [
    ("be", 0),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("va", 44),
    ("ef", 46),
];

pub(super) fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The names of the bits, in the order of the list; those of `absent` with an exclamation mark.
pub(super) fn flags(names: &[(&str, u8)], present: u8, absent: u8) -> String {
    let of = |(name, bit): &(&str, u8)| match (present & bit != 0, absent & bit != 0) {
        (true, _) => Some((*name).to_owned()),
        (_, true) => Some(format!("!{name}")),
        _ => None,
    };
    names.iter().filter_map(of).collect::<Vec<_>>().join(",")
}

pub(super) fn protocol(word: &str) -> Option<u8> {
    named(&PROTOCOLS, word).or_else(|| word.parse().ok())
}

/// The first name of a protocol, or its number.
pub(super) fn protocol_name(number: u8) -> String {
    let found = PROTOCOLS.iter().find(|(_, known)| *known == number);
    found.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
}

pub(super) fn port(word: &str) -> Option<u16> {
    word.parse().ok().or_else(|| named(&SERVICES, word))
}

pub(super) fn unreach(word: &str) -> Option<u8> {
    let known = UNREACH.iter().position(|name| *name == word).map(|code| code as u8);
    known.or_else(|| answerable(word))
}

/// A code that the router's answers may have.
fn answerable(word: &str) -> Option<u8> {
    word.parse().ok().filter(|code| *code < u8::MAX)
}

pub(super) fn unreach_name(code: u8) -> String {
    UNREACH.get(usize::from(code)).map_or_else(|| code.to_string(), |name| (*name).to_owned())
}

/// The code of ICMPv6 for one of ICMP, as in FreeBSD.
pub(super) const fn unreach6_of(code: u8) -> u8 {
    const NO_ROUTE: u8 = 0;
    const ADMIN_PROHIBITED: u8 = 1;
    const PORT: u8 = 4;
    match code {
        0 | 1 | 5 | 6 | 7 | 11 | 12 => NO_ROUTE,
        3 => PORT,
        _ => ADMIN_PROHIBITED,
    }
}

pub(super) fn unreach6(word: &str) -> Option<u8> {
    named(&UNREACH6, word).or_else(|| answerable(word))
}

pub(super) fn unreach6_name(code: u8) -> String {
    let found = UNREACH6.iter().find(|(_, known)| *known == code);
    found.map_or_else(|| code.to_string(), |(name, _)| (*name).to_owned())
}

pub(super) fn dscp(word: &str) -> Option<u8> {
    named(&DSCP, word).or_else(|| word.parse().ok()).filter(|code| *code < 64)
}

/// The first name of a code point, or its number.
pub(super) fn dscp_name(point: u8) -> String {
    let found = DSCP.iter().find(|(_, known)| *known == point);
    found.map_or_else(|| point.to_string(), |(name, _)| (*name).to_owned())
}
