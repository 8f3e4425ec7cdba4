//! The steps of an explanation, and their text.

use std::fmt::{self, Display};
use std::net::IpAddr;

use fullview_table::NextHop;

use super::headers::Headers;
use crate::interface::SourceCheck;
use crate::verdict::Verdict;
use crate::wire::ethernet::Mac;

/// One step of a packet on its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An interface received the frame.
    Received {
        /// Its name.
        interface: String,
        /// Its VLAN; 0 if untagged.
        vlan: u16,
        /// Length of the frame.
        bytes: usize,
    },
    /// The headers are correct.
    Headers(Headers),
    /// A rule of policy routing selected the packet.
    Rule {
        /// The number that users know it by.
        priority: u32,
        /// What follows.
        decision: RuleDecision,
    },
    /// The destination was looked up.
    Lookup {
        /// The table's number.
        table: u32,
        /// The destination.
        addr: IpAddr,
        /// The prefix of the route, if it is known.
        prefix: Option<String>,
        /// The next hop in the FIB.
        hop: NextHop,
        /// The name of the next hop.
        name: Option<String>,
        /// Whether the route has another next hop by now, which the FIB does not have yet.
        is_stale: bool,
    },
    /// The flow hash picked a member of a group.
    Member {
        /// The group's index.
        group: NextHop,
        /// The number of the member, from 1.
        number: usize,
        /// The number of members.
        of: usize,
        /// The flow's hash.
        hash: u32,
        /// The member's index.
        hop: NextHop,
    },
    /// The route back to the source was checked.
    SourceCheck {
        /// The kind of check.
        check: SourceCheck,
        /// The source.
        source: IpAddr,
        /// The next hop back to the source.
        back: NextHop,
        /// Whether the packet passes.
        passes: bool,
    },
    /// The next hop's adjacency.
    NextHop {
        /// Its index.
        hop: NextHop,
        /// Its description.
        leads: String,
    },
    /// The length was compared with the MTU of the link.
    Length {
        /// Length of the packet.
        bytes: usize,
        /// The MTU.
        mtu: u32,
    },
    /// TTL or hop limit was decremented.
    Hops {
        /// The value that was received.
        before: u8,
        /// The value that is sent.
        after: u8,
    },
    /// The frame left.
    Sent {
        /// The egress interface.
        interface: String,
        /// The neighbour's MAC address.
        mac: Mac,
        /// Length of the frame.
        bytes: usize,
    },
    /// The packet was not forwarded.
    Rejected(Verdict),
}

/// What a rule of policy routing does with a packet that it selects. Tables have the numbers that users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleDecision {
    /// The packet is looked up in this table.
    Table(u32),
    /// This table has no route to the destination, so the next rule decides.
    NoRoute(u32),
    /// This table has only a default route to the destination, which does not count, so the next rule decides.
    OnlyDefault(u32),
    /// Some of the rules that follow are passed over.
    Skips,
    /// The slow path decides.
    Punts,
}

impl Display for RuleDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleDecision::Table(table) => write!(f, "look up in table {table}"),
            RuleDecision::NoRoute(table) => {
                write!(f, "table {table} has no route to the destination, the next rule decides")
            }
            RuleDecision::OnlyDefault(table) => {
                write!(f, "the default route of table {table} does not count, the next rule decides")
            }
            RuleDecision::Skips => f.write_str("passes over rules that follow"),
            RuleDecision::Punts => f.write_str("leaves the packet to the host"),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Received { interface, vlan: 0, bytes } => {
                write!(f, "received on {interface}, {bytes} bytes")
            }
            Step::Received { interface, vlan, bytes } => {
                write!(f, "received on {interface} (VLAN {vlan}), {bytes} bytes")
            }
            Step::Headers(headers) => write_headers(f, headers),
            Step::Rule { priority, decision } => write!(f, "rule {priority}: {decision}"),
            Step::Lookup { table, addr, prefix, hop, name, is_stale } => {
                write!(f, "table {table}: ")?;
                write_route(f, *addr, prefix.as_deref(), *hop, name.as_deref())?;
                if *is_stale { f.write_str(" (the route has changed, the FIB follows)") } else { Ok(()) }
            }
            Step::Member { group, number, of, hash, hop } => {
                write!(
                    f,
                    "group {}: member {number} of {of}, next hop {} (flow hash {hash:08x})",
                    group.0, hop.0
                )
            }
            Step::SourceCheck { check, source, back, passes } => {
                write_source(f, *check, *source, *back, *passes)
            }
            Step::NextHop { hop, leads } => write!(f, "next hop {}: {leads}", hop.0),
            Step::Length { bytes, mtu } => write!(f, "length {bytes}, the link takes {mtu}"),
            Step::Hops { before, after } => write!(f, "hops left {before} -> {after}"),
            Step::Sent { interface, mac, bytes } => write!(f, "sent on {interface} to {mac}, {bytes} bytes"),
            Step::Rejected(Verdict::Drop(reason)) => write!(f, "dropped: {reason}"),
            Step::Rejected(Verdict::Reject(answer)) => write!(f, "rejected: {answer}"),
            Step::Rejected(Verdict::Punt(punt)) => write!(f, "handed to the host: {punt}"),
            Step::Rejected(Verdict::Forward) => f.write_str("forwarded"),
        }
    }
}

fn write_headers(f: &mut fmt::Formatter<'_>, headers: &Headers) -> fmt::Result {
    let Headers { source, destination, hops, total_len, .. } = headers;
    let (family, hops_name) = if source.is_ipv4() { ("IPv4", "TTL") } else { ("IPv6", "hop limit") };
    write!(f, "{family} header ok: {source} -> {destination}, {hops_name} {hops}, {total_len} bytes")
}

fn write_route(
    f: &mut fmt::Formatter<'_>,
    addr: IpAddr,
    prefix: Option<&str>,
    hop: NextHop,
    name: Option<&str>,
) -> fmt::Result {
    match prefix {
        Some(prefix) => write!(f, "{prefix}")?,
        None => write!(f, "{addr}")?,
    }
    match name {
        _ if !hop.is_some() => write!(f, ": no route"),
        Some(name) => write!(f, " via next hop {} ({name})", hop.0),
        None => write!(f, " via next hop {}", hop.0),
    }
}

fn write_source(
    f: &mut fmt::Formatter<'_>,
    check: SourceCheck,
    source: IpAddr,
    back: NextHop,
    passes: bool,
) -> fmt::Result {
    let word = match check {
        SourceCheck::Off => "off",
        SourceCheck::Loose => "loose",
        SourceCheck::Strict => "strict",
    };
    let found = if passes { "passes" } else { "fails" };
    write!(f, "source check ({word}) {found}: the route back to {source} uses next hop {}", back.0)
}
