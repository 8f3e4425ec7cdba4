//! MRT table dumps (RFC 6396): TABLE_DUMP, and TABLE_DUMP_V2 with additional paths (RFC 8050).
//!
//! Route collectors (Route Views, RIPE RIS) publish such dumps, and BIRD, FRR and OpenBGPD write them. A dump has every
//! path of every peer; a forwarding table needs one path for each prefix. It is chosen by a part of RFC 4271, section
//! 9.1:
//!
//! 1. the highest LOCAL_PREF, 100 where there is none;
//! 2. the shortest AS_PATH;
//! 3. the lowest ORIGIN: IGP, EGP, incomplete;
//! 4. among paths by the same neighbour AS, the lowest MULTI_EXIT_DISC, 0 where there is none;
//! 5. the lowest ORIGINATOR_ID or BGP identifier of the peer (TABLE_DUMP has none: all equal);
//! 6. the lowest peer address, then the lowest path identifier.
//!
//! The result does not depend on the order of the records. The next hop is that of MP_REACH_NLRI, otherwise NEXT_HOP,
//! otherwise the address of the peer; if none of these is set and fits the family, the route counts as one without a
//! next hop.
//!
//! Records that are not unicast routes are counted and skipped. A path with malformed attributes, or whose list of attributes
//! does not end where it says, counts as withdrawn (RFC 7606); a malformed *record* ends the load with an error that names its
//! byte offset.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::io::BufRead;
use std::net::IpAddr;

use bgpkit_parser::models::{
    AsPathSegment, AttrRaw, AttrType, AttributeValue, Attributes, CommonHeader, EntryType, MrtMessage,
    NetworkPrefix, Peer, PeerIndexTable, RibAfiEntries, RibEntry, TableDumpMessage, TableDumpV2Message,
};
use bgpkit_parser::{ParserError, RawMrtRecord, chunk_mrt_record, error::BgpValidationWarning};
use ipnet::IpNet;
use rustc_hash::FxHashMap;

use crate::addr::Address;
use crate::nexthop::Target;
use crate::prefix::Prefix;

use super::best_path::{BgpPath, Contest, Rank, Tie};
use super::builder::{BuilderFamily, TableBuilder, Via};
use super::error::{Fault, Located};

/// LOCAL_PREF of a path that has none: the default of every common implementation.
const DEFAULT_LOCAL_PREF: u32 = 100;

pub(super) fn read_into(mut input: impl BufRead, builder: &mut TableBuilder) -> Result<(), Located> {
    let mut dump = Dump::default();
    let mut offset = 0;
    while let Some(record) = next_record(&mut input).map_err(|fault| fault.at_byte(offset))? {
        let length = record.total_bytes_len() as u64;
        builder.report.records += 1;
        dump.take(record, builder).map_err(|fault| fault.at_byte(offset))?;
        offset += length;
    }
    dump.inet.add_winners(builder)?;
    dump.inet6.add_winners(builder)
}

/// The next record as bytes; `None` at the end of the file.
fn next_record(input: &mut impl BufRead) -> Result<Option<RawMrtRecord>, Fault> {
    // The parser takes a packed file that was cut short between two records for a whole one.
    if input.fill_buf().map_err(Fault::Read)?.is_empty() {
        return Ok(None);
    }
    match chunk_mrt_record(input) {
        Ok(record) => Ok(Some(record)),
        Err(error) => match error.error {
            ParserError::IoError(error) => Err(Fault::Read(error)),
            error => Err(Fault::Mrt(error.to_string())),
        },
    }
}

/// The paths read so far.
#[derive(Default)]
struct Dump {
    /// The peers that entries refer to by number; a dump of several tables has several of these.
    peers: Option<PeerIndexTable>,
    inet: Contests<u32>,
    inet6: Contests<u128>,
}

impl Dump {
    fn take(&mut self, record: RawMrtRecord, builder: &mut TableBuilder) -> Result<(), Fault> {
        if !is_unicast_or_peers(&record.common_header) {
            builder.report.skipped += 1;
            return Ok(());
        }
        let (announced, lists) = (announced_entries(&record), whole_lists(&record));
        let message = record.parse().map_err(|error| Fault::Mrt(error.to_string()))?.message;
        match message {
            MrtMessage::TableDumpMessage(entry) => self.take_v1(&[entry], &lists, builder),
            MrtMessage::TableDumpMessageBatch(entries) => self.take_v1(&entries, &lists, builder),
            MrtMessage::TableDumpV2Message(TableDumpV2Message::PeerIndexTable(peers)) => {
                self.peers = Some(peers);
                Ok(())
            }
            MrtMessage::TableDumpV2Message(TableDumpV2Message::RibAfi(entries)) => {
                check_complete(&entries, announced)?;
                self.take_v2(&entries, &lists, builder)
            }
            _ => Err(Fault::Mrt("its content does not match its header".into())),
        }
    }

    fn take_v1(
        &mut self,
        entries: &[TableDumpMessage],
        lists: &[bool],
        builder: &mut TableBuilder,
    ) -> Result<(), Fault> {
        for (entry, is_whole) in entries.iter().zip(with_more(lists)) {
            let origin = PathOrigin { bgp_id: 0, ip: entry.peer_ip, asn: entry.peer_asn.into(), path_id: 0 };
            self.enter(entry.prefix, (&entry.attributes, is_whole), origin, builder)?;
        }
        Ok(())
    }

    fn take_v2(
        &mut self,
        entries: &RibAfiEntries,
        lists: &[bool],
        builder: &mut TableBuilder,
    ) -> Result<(), Fault> {
        for (entry, is_whole) in entries.rib_entries.iter().zip(with_more(lists)) {
            let origin = PathOrigin::of(self.peer(entry)?, entry);
            self.enter(entries.prefix, (&entry.attributes, is_whole), origin, builder)?;
        }
        Ok(())
    }

    fn peer(&self, entry: &RibEntry) -> Result<&Peer, Fault> {
        let peers =
            self.peers.as_ref().ok_or_else(|| Fault::Mrt("routes before the peer index table".into()))?;
        let unknown = || Fault::Mrt(format!("peer {} is not in the peer index table", entry.peer_index));
        peers.get_peer_by_id(&entry.peer_index).ok_or_else(unknown)
    }

    fn enter(
        &mut self,
        prefix: NetworkPrefix,
        (attributes, is_whole): (&Attributes, bool),
        origin: PathOrigin,
        builder: &mut TableBuilder,
    ) -> Result<(), Fault> {
        let is_inet6 = matches!(prefix.prefix, IpNet::V6(_));
        if !is_whole || is_malformed(attributes, is_inet6) {
            builder.report.malformed_paths += 1;
            return Ok(());
        }
        // Bits beyond the length have no meaning in MRT (RFC 6396, section 4.3.2), so they are cut off, not refused.
        match prefix.prefix {
            IpNet::V4(net) => self.inet.enter(
                Prefix::containing(net.addr().to_bits(), net.prefix_len()),
                attributes,
                origin,
                builder,
            ),
            IpNet::V6(net) => self.inet6.enter(
                Prefix::containing(net.addr().to_bits(), net.prefix_len()),
                attributes,
                origin,
                builder,
            ),
        }
    }
}

/// Whether a record is used: both families of TABLE_DUMP, and of TABLE_DUMP_V2 the peers (1) and the unicast routes
/// without (2, 4) and with (8, 10) path identifiers.
fn is_unicast_or_peers(header: &CommonHeader) -> bool {
    match header.entry_type {
        EntryType::TABLE_DUMP => matches!(header.entry_subtype, 1 | 2),
        EntryType::TABLE_DUMP_V2 => matches!(header.entry_subtype, 1 | 2 | 4 | 8 | 10),
        _ => false,
    }
}

/// The number of entries that a TABLE_DUMP_V2 route record announces: the two bytes after the sequence number (4
/// bytes), the prefix length (1 byte) and the prefix. The parser stops at the first bad entry silently; this number
/// reveals it.
fn announced_entries(record: &RawMrtRecord) -> Option<usize> {
    let body = &record.message_bytes;
    let at = 5 + usize::from(*body.get(4)?).div_ceil(8);
    Some(usize::from(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?])))
}

fn check_complete(entries: &RibAfiEntries, announced: Option<usize>) -> Result<(), Fault> {
    let found = entries.rib_entries.len();
    match announced {
        Some(announced) if announced == found => Ok(()),
        announced => Err(Fault::Mrt(format!(
            "{} has {} paths, but only {found} can be read",
            entries.prefix.prefix,
            announced.unwrap_or_default()
        ))),
    }
}

/// Whether the lists of attributes of a record's entries end where their lengths say, in the order of the entries. The parser
/// takes what it can read of a list.
fn whole_lists(record: &RawMrtRecord) -> Vec<bool> {
    const IDENTIFIED: [u16; 2] = [8, 10];
    let (header, body) = (&record.common_header, &record.message_bytes[..]);
    let address = if header.entry_subtype == 1 { 4 } else { 16 };
    // What stands before the entries, and in each before the length of its list.
    let (before, head) = match header.entry_type {
        EntryType::TABLE_DUMP => (4, address + 1 + 1 + 4 + address + 2),
        _ => (
            7 + body.get(4).map_or(0, |bits| usize::from(*bits).div_ceil(8)),
            if IDENTIFIED.contains(&header.entry_subtype) { 2 + 4 + 4 } else { 2 + 4 },
        ),
    };
    let mut rest = body.get(before..).unwrap_or_default();
    std::iter::from_fn(|| {
        let (list, after) = sized(rest.get(head..)?, 2)?;
        rest = after;
        Some(is_whole(list))
    })
    .collect()
}

/// No list that was not found is whole.
fn with_more(lists: &[bool]) -> impl Iterator<Item = bool> {
    lists.iter().copied().chain(std::iter::repeat(false))
}

/// Whether a list of attributes ends with the end of one: flags, type, a length of one byte or two, the value.
fn is_whole(mut list: &[u8]) -> bool {
    const EXTENDED_LENGTH: u8 = 0x10;
    while let [flags, _, value @ ..] = list {
        let length = if flags & EXTENDED_LENGTH == 0 { 1 } else { 2 };
        let Some((_, after)) = sized(value, length) else { return false };
        list = after;
    }
    list.is_empty()
}

/// The bytes after a length of so many bytes, and what comes after them.
fn sized(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(length)?;
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}

/// Whether an attribute that the choice of the path or its next hop needs cannot be understood.
fn is_malformed(attributes: &Attributes, is_inet6: bool) -> bool {
    let values: Vec<&AttributeValue> = attributes.iter().collect();
    let has_reach = values.iter().any(|value| matches!(value, AttributeValue::MpReachNlri(_)));
    // With MP_REACH_NLRI it means nothing (RFC 4760, section 3), and is of the other family.
    let is_ignored = |raw: &AttrRaw| is_inet6 && has_reach && raw.code == u8::from(AttrType::NEXT_HOP);
    let is_raw = |value: &&AttributeValue| match value {
        AttributeValue::Raw(raw) => is_needed(raw.code.into()) && !is_ignored(raw),
        _ => false,
    };
    let warnings = attributes.validation_warnings();
    values.iter().any(is_raw) || warnings.iter().any(|warning| is_fatal(warning, is_inet6))
}

fn is_needed(kind: AttrType) -> bool {
    matches!(
        kind,
        AttrType::ORIGIN
            | AttrType::AS_PATH
            | AttrType::NEXT_HOP
            | AttrType::MULTI_EXIT_DISCRIMINATOR
            | AttrType::LOCAL_PREFERENCE
            | AttrType::MP_REACHABLE_NLRI
    )
}

/// Whether the parser understood an attribute in a way that cannot be right.
fn is_fatal(warning: &BgpValidationWarning, is_inet6: bool) -> bool {
    use BgpValidationWarning::{
        AttributeLengthError, InvalidNextHopAttribute, InvalidOriginAttribute, MalformedAsPath,
    };
    match warning {
        MalformedAsPath { .. } | InvalidNextHopAttribute { .. } | InvalidOriginAttribute { .. } => true,
        // The parser expects the next hop of IPv4.
        AttributeLengthError { attr_type: AttrType::NEXT_HOP, .. } => !is_inet6,
        AttributeLengthError { attr_type, .. } => is_needed(*attr_type),
        _ => false,
    }
}

/// The sender of a path.
#[derive(Clone, Copy)]
struct PathOrigin {
    bgp_id: u32,
    ip: IpAddr,
    asn: u32,
    path_id: u32,
}

impl PathOrigin {
    fn of(peer: &Peer, entry: &RibEntry) -> Self {
        PathOrigin {
            bgp_id: peer.peer_bgp_id.to_bits(),
            ip: peer.peer_ip,
            asn: peer.peer_asn.into(),
            path_id: entry.path_id.unwrap_or(0),
        }
    }
}

/// The contest of each prefix of one family.
#[derive(Default)]
struct Contests<A: Address>(FxHashMap<Prefix<A>, Contest>);

impl<A: BuilderFamily> Contests<A> {
    fn enter(
        &mut self,
        prefix: Prefix<A>,
        attributes: &Attributes,
        origin: PathOrigin,
        builder: &mut TableBuilder,
    ) -> Result<(), Fault> {
        if !builder.wants::<A>() {
            builder.report.skipped += 1;
            return Ok(());
        }
        let path = path::<A>(attributes, origin);
        let (known, limit) = (self.0.len(), builder.max_routes());
        match self.0.entry(prefix) {
            Entry::Occupied(contest) => contest.into_mut().enter(path),
            Entry::Vacant(place) if known < limit => {
                place.insert(Contest::new(path));
            }
            Entry::Vacant(_) => return Err(Fault::TooManyRoutes { limit }),
        }
        Ok(())
    }

    /// Adds the winners in the order of prefixes, so that the numbers of next hops do not depend on the order of the
    /// records.
    fn add_winners(self, builder: &mut TableBuilder) -> Result<(), Located> {
        let mut contests: Vec<_> = self.0.into_iter().collect();
        contests.sort_unstable_by_key(|(prefix, _)| *prefix);
        for (prefix, contest) in contests {
            let via = contest.winner().map_or(Via::Unspecified, |ip| Via::Target(Target::Gateway(ip)));
            builder.add(prefix, via, 0).map_err(|fault| fault.at(super::At::Whole))?;
        }
        Ok(())
    }
}

fn path<A: Address>(attributes: &Attributes, origin: PathOrigin) -> BgpPath {
    let as_path = attributes.effective_as_path();
    let rank = Rank {
        local_pref: Reverse(attributes.local_preference().unwrap_or(DEFAULT_LOCAL_PREF)),
        as_path_len: as_path.as_ref().map_or(0, |path| path.route_len()),
        origin: attributes.origin() as u8,
    };
    let neighbor = as_path.iter().flat_map(|path| path.iter_segments()).find_map(first_as);
    let bgp_id = attributes.origin_id().map_or(origin.bgp_id, |id| id.to_bits());
    BgpPath {
        rank,
        neighbor_as: neighbor.unwrap_or(origin.asn),
        med: attributes.multi_exit_discriminator().unwrap_or(0),
        tie: Tie { bgp_id, peer: origin.ip, path_id: origin.path_id },
        via: via::<A>(attributes, origin.ip),
    }
}

/// The neighbour AS: the first AS of an AS_SEQUENCE (RFC 4271, section 9.1.2.2).
fn first_as(segment: &AsPathSegment) -> Option<u32> {
    match segment {
        AsPathSegment::AsSequence(sequence) => sequence.first().map(|asn| (*asn).into()),
        _ => None,
    }
}

/// The next hop of a path. BIRD writes the unspecified address as the peer of its own routes.
fn via<A: Address>(attributes: &Attributes, peer: IpAddr) -> Option<IpAddr> {
    let reach = attributes.get_reachable_nlri().and_then(|reach| reach.next_hop);
    let candidates = [reach.map(|hop| hop.global_addr()), attributes.next_hop(), Some(peer)];
    let fits = |ip: &IpAddr| !ip.is_unspecified() && (A::BITS == 32 || ip.is_ipv6());
    candidates.into_iter().flatten().find(fits)
}
