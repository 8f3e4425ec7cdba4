//! Words that are no names unless they stand in quotes.

const RESERVED: &[&str] = &[
    "af-to",
    "all",
    "allow-opts",
    "allow-related",
    "altq",
    "anchor",
    "antispoof",
    "any",
    "bandwidth",
    "binat",
    "binat-anchor",
    "binat-to",
    "bitmask",
    "block",
    "block-policy",
    "bridge-to",
    "code",
    "debug",
    "divert-reply",
    "divert-to",
    "dnpipe",
    "dnqueue",
    "drop",
    "dup-to",
    "ether",
    "fail-policy",
    "fastroute",
    "file",
    "fingerprints",
    "flags",
    "floating",
    "flush",
    "for",
    "fragment",
    "from",
    "global",
    "group",
    "hostid",
    "icmp-type",
    "icmp6-type",
    "if-bound",
    "in",
    "include",
    "inet",
    "inet6",
    "interval",
    "keep",
    "keepcounters",
    "label",
    "limit",
    "load",
    "log",
    "loginterface",
    "map-e-portset",
    "match",
    "max",
    "max-mss",
    "max-pkt-rate",
    "max-pkt-size",
    "max-src-conn",
    "max-src-conn-rate",
    "max-src-nodes",
    "max-src-states",
    "min-ttl",
    "modulate",
    "nat",
    "nat-anchor",
    "nat-to",
    "no",
    "no-df",
    "no-route",
    "no-sync",
    "on",
    "once",
    "optimization",
    "os",
    "out",
    "overload",
    "pass",
    "pflow",
    "port",
    "prio",
    "probability",
    "proto",
    "queue",
    "quick",
    "random",
    "random-id",
    "rdr",
    "rdr-anchor",
    "rdr-to",
    "reassemble",
    "received-on",
    "reply-to",
    "require-order",
    "return",
    "return-icmp",
    "return-icmp6",
    "return-rst",
    "ridentifier",
    "round-robin",
    "route",
    "route-to",
    "rtable",
    "rule",
    "ruleset-optimization",
    "scrub",
    "set",
    "set-tos",
    "skip",
    "sloppy",
    "source-hash",
    "source-track",
    "state",
    "state-defaults",
    "state-policy",
    "static-port",
    "sticky-address",
    "syncookies",
    "synproxy",
    "table",
    "tag",
    "tagged",
    "timeout",
    "to",
    "tos",
    "ttl",
    "urpf-failed",
    "user",
];

pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// Words of pf.conf(5) for what this filter does not do, each with what to write instead.
const REFUSED: &[(&str, &str)] = &[
    ("route-to", ROUTES),
    ("reply-to", ROUTES),
    ("dup-to", ROUTES),
    ("fastroute", ROUTES),
    ("prefer-ipv6-nexthop", ROUTES),
    ("af-to", "addresses are translated within one family: write a rule of translation (nat, rdr or binat)"),
    ("divert-to", DIVERT),
    ("divert-reply", DIVERT),
    ("divert-packet", DIVERT),
    ("dnpipe", SHAPING),
    ("dnqueue", SHAPING),
    ("queue", SHAPING),
    ("altq", SHAPING),
    ("ether", "rules are about IPv4 and IPv6 packets: filter by address with pass, block or match"),
    ("modulate", STATES),
    ("synproxy", STATES),
];

const ROUTES: &str = "route-to, reply-to and dup-to are not supported, on block rules or others: give the router a route instead";
const DIVERT: &str =
    "no program can receive packets from a rule: use pass or block, or a rule of translation (rdr)";
const SHAPING: &str = "packets are passed or dropped, not queued: leave the word out, or limit connections with max-src-conn-rate";
const STATES: &str = "write 'keep state': it checks sequence numbers, and incomplete connections lock no new ones out of a full table";

/// What to write instead of a word that is refused.
pub fn instead_of(word: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == word).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`crate::pf::lower::support`] refuses these.
    const NOT_ENFORCED: [&str; 6] = ["nat-to", "rdr-to", "binat-to", "max-pkt-rate", "overload", "once"];

    #[test]
    fn advice_names_nothing_that_is_refused_too() {
        for (word, instead) in REFUSED {
            assert!(!NOT_ENFORCED.iter().any(|refused| instead.contains(refused)), "{word}: {instead}");
        }
    }

    #[test]
    fn words_are_sorted_for_the_search() {
        assert!(RESERVED.is_sorted());
    }
}
