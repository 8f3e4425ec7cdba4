//! Types and codes of ICMP and ICMPv6 messages by pf's names.

use crate::address::Family;

const TYPES: &[(&str, u8)] = &[
    ("echoreq", 8),
    ("echorep", 0),
    ("unreach", 3),
    ("squench", 4),
    ("redir", 5),
    ("althost", 6),
    ("routeradv", 9),
    ("routersol", 10),
    ("timex", 11),
    ("paramprob", 12),
    ("timereq", 13),
    ("timerep", 14),
    ("inforeq", 15),
    ("inforep", 16),
    ("maskreq", 17),
    ("maskrep", 18),
    ("trace", 30),
    ("dataconv", 31),
    ("mobredir", 32),
    ("ipv6-where", 33),
    ("ipv6-here", 34),
    ("mobregreq", 35),
    ("mobregrep", 36),
    ("skip", 39),
    ("photuris", 40),
];

/// `groupqry` and `listqry`, `grouprep` and `listenrep`, and `groupterm` and `listendone` are the same message.
const TYPES6: &[(&str, u8)] = &[
    ("unreach", 1),
    ("toobig", 2),
    ("timex", 3),
    ("paramprob", 4),
    ("echoreq", 128),
    ("echorep", 129),
    ("groupqry", 130),
    ("listqry", 130),
    ("grouprep", 131),
    ("listenrep", 131),
    ("groupterm", 132),
    ("listendone", 132),
    ("routersol", 133),
    ("routeradv", 134),
    ("neighbrsol", 135),
    ("neighbradv", 136),
    ("redir", 137),
    ("routrrenum", 138),
    ("wrureq", 139),
    ("fqdnreq", 139),
    ("niqry", 139),
    ("wrurep", 140),
    ("fqdnrep", 140),
    ("nirep", 140),
    ("mtraceresp", 200),
    ("mtrace", 201),
];

const CODES: &[(&str, u8, u8)] = &[
    ("net-unr", 3, 0),
    ("host-unr", 3, 1),
    ("proto-unr", 3, 2),
    ("port-unr", 3, 3),
    ("needfrag", 3, 4),
    ("srcfail", 3, 5),
    ("net-unk", 3, 6),
    ("host-unk", 3, 7),
    ("isolate", 3, 8),
    ("net-prohib", 3, 9),
    ("host-prohib", 3, 10),
    ("net-tos", 3, 11),
    ("host-tos", 3, 12),
    ("filter-prohib", 3, 13),
    ("host-preced", 3, 14),
    ("cutoff-preced", 3, 15),
    ("redir-net", 5, 0),
    ("redir-host", 5, 1),
    ("redir-tos-net", 5, 2),
    ("redir-tos-host", 5, 3),
    ("normal-adv", 9, 0),
    ("common-adv", 9, 16),
    ("transit", 11, 0),
    ("reassemb", 11, 1),
    ("badhead", 12, 0),
    ("optmiss", 12, 1),
    ("badlen", 12, 2),
    ("unknown-ind", 40, 1),
    ("auth-fail", 40, 2),
    ("decrypt-fail", 40, 3),
];

const CODES6: &[(&str, u8, u8)] = &[
    ("noroute-unr", 1, 0),
    ("admin-unr", 1, 1),
    ("beyond-unr", 1, 2),
    ("addr-unr", 1, 3),
    ("port-unr", 1, 4),
    ("transit", 3, 0),
    ("reassemb", 3, 1),
    ("badhead", 4, 0),
    ("nxthdr", 4, 1),
    ("redironlink", 137, 0),
    ("redirrouter", 137, 1),
];

fn types(family: Family) -> &'static [(&'static str, u8)] {
    match family {
        Family::Inet => TYPES,
        Family::Inet6 => TYPES6,
    }
}

fn codes(family: Family) -> &'static [(&'static str, u8, u8)] {
    match family {
        Family::Inet => CODES,
        Family::Inet6 => CODES6,
    }
}

pub fn kind(name: &str, family: Family) -> Option<u8> {
    types(family).iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

pub fn kind_name(kind: u8, family: Family) -> Option<&'static str> {
    types(family).iter().find(|(_, known)| *known == kind).map(|(name, _)| *name)
}

/// The code that a name stands for in messages of a type.
pub fn code(name: &str, kind: u8, family: Family) -> Option<u8> {
    codes(family).iter().find(|(known, of, _)| *known == name && *of == kind).map(|(_, _, code)| *code)
}

pub fn code_name(code: u8, kind: u8, family: Family) -> Option<&'static str> {
    codes(family).iter().find(|(_, of, known)| *known == code && *of == kind).map(|(name, _, _)| *name)
}
