//! The steps of an explanation, and their words.

use std::fmt::{self, Display};
use std::net::IpAddr;

use fullview_table::NextHop;

use super::headers::Headers;
use crate::interface::SourceCheck;
use crate::verdict::Verdict;
use crate::wire::ethernet::Mac;

/// One thing that happens to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An interface took the frame.
    Received {
        /// Its name.
        interface: String,
        /// 0 if untagged.
        vlan: u16,
        /// Of the frame.
        bytes: usize,
    },
    /// Its headers are in order.
    Headers(Headers),
    /// The FIB answered.
    Found {
        /// Which, as it is called.
        table: u32,
        /// What was looked up.
        addr: IpAddr,
        /// The route, if its name is known.
        prefix: Option<String>,
        /// The answer.
        hop: NextHop,
        /// What that is called.
        name: Option<String>,
        /// Whether the route has another next hop by now.
        behind: bool,
    },
    /// A group picked a member.
    Member {
        /// The group's index.
        group: NextHop,
        /// Which of its members, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The flow's hash.
        hash: u32,
        /// The member's index.
        hop: NextHop,
    },
    /// The way back to the source was looked at.
    Source {
        /// How strictly.
        check: SourceCheck,
        /// Whose.
        source: IpAddr,
        /// Where it leads.
        back: NextHop,
        /// Whether that will do.
        passes: bool,
    },
    /// What the next hop is.
    NextHop {
        /// Its index.
        hop: NextHop,
        /// In words.
        leads: String,
    },
    /// Its length was compared with what the link takes.
    Length {
        /// Of the packet.
        bytes: usize,
        /// At most.
        mtu: u32,
    },
    /// TTL or hop limit.
    Hops {
        /// As it came.
        before: u8,
        /// As it goes.
        after: u8,
    },
    /// It left.
    Sent {
        /// By which interface.
        interface: String,
        /// To which station.
        mac: Mac,
        /// Of the frame.
        bytes: usize,
    },
    /// It was not forwarded.
    Ended(Verdict),
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
            Step::Found { table, addr, prefix, hop, name, behind } => {
                write!(f, "table {table}: ")?;
                write_route(f, *addr, prefix.as_deref(), *hop, name.as_deref())?;
                if *behind { f.write_str(" (the route has changed, the FIB follows)") } else { Ok(()) }
            }
            Step::Member { group, number, of, hash, hop } => {
                write!(
                    f,
                    "group {}: member {number} of {of}, next hop {} (flow hash {hash:08x})",
                    group.0, hop.0
                )
            }
            Step::Source { check, source, back, passes } => write_source(f, *check, *source, *back, *passes),
            Step::NextHop { hop, leads } => write!(f, "next hop {}: {leads}", hop.0),
            Step::Length { bytes, mtu } => write!(f, "length {bytes}, the link takes {mtu}"),
            Step::Hops { before, after } => write!(f, "hops left {before} -> {after}"),
            Step::Sent { interface, mac, bytes } => write!(f, "sent on {interface} to {mac}, {bytes} bytes"),
            Step::Ended(Verdict::Drop(reason)) => write!(f, "dropped: {reason}"),
            Step::Ended(Verdict::Punt(punt)) => write!(f, "handed to the host: {punt}"),
            Step::Ended(Verdict::Forward) => f.write_str("forwarded"),
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
    write!(f, "source check ({word}) {found}: the way back to {source} is next hop {}", back.0)
}
