//! MRT dumps made byte by byte after RFC 6396: which path wins, and how damage is reported.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use fullview_table::feed::{self, Format, Loaded, Options};
use fullview_table::{Family, Target};

const ORIGIN: u8 = 1;
const AS_PATH: u8 = 2;
const NEXT_HOP: u8 = 3;
const MED: u8 = 4;
const LOCAL_PREF: u8 = 5;
const ORIGINATOR_ID: u8 = 9;
const MP_REACH: u8 = 14;

fn attribute(kind: u8, value: &[u8]) -> Vec<u8> {
    let flags = if matches!(kind, MED | ORIGINATOR_ID | MP_REACH) { 0x80 } else { 0x40 };
    [&[flags, kind, value.len() as u8], value].concat()
}

fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let header = [&1_700_000_000u32.to_be_bytes()[..], &kind.to_be_bytes(), &subtype.to_be_bytes()].concat();
    [&header[..], &(body.len() as u32).to_be_bytes(), body].concat()
}

/// Peers 0, 1, 2… with addresses 192.0.2.1, .2, .3… and BGP identifiers 10.0.0.9, .8, .7…
fn peers(count: u8) -> Vec<u8> {
    let mut body = [&[192, 0, 2, 250][..], &[0, 0], &[0, count]].concat();
    for peer in 0..count {
        body.extend([2, 10, 0, 0, 9 - peer, 192, 0, 2, peer + 1]);
        body.extend(64_500u32.to_be_bytes());
    }
    record(13, 1, &body)
}

/// A path as its peer sent it; `med` and `local_pref` are optional.
#[derive(Clone)]
struct Path4 {
    peer: u16,
    as_path: Vec<u32>,
    origin: u8,
    med: Option<u32>,
    local_pref: Option<u32>,
    extra: Vec<u8>,
}

fn path(peer: u16, as_path: &[u32]) -> Path4 {
    Path4 { peer, as_path: as_path.into(), origin: 0, med: None, local_pref: None, extra: Vec::new() }
}

impl Path4 {
    /// The next hop is 203.0.113.(peer + 1).
    fn attributes(&self, asn_bytes: usize) -> Vec<u8> {
        let mut sequence = vec![2, self.as_path.len() as u8];
        self.as_path.iter().for_each(|asn| sequence.extend(&asn.to_be_bytes()[4 - asn_bytes..]));
        let mut all = [attribute(ORIGIN, &[self.origin]), attribute(AS_PATH, &sequence)].concat();
        all.extend(attribute(NEXT_HOP, &[203, 0, 113, self.peer as u8 + 1]));
        all.extend(self.med.iter().flat_map(|med| attribute(MED, &med.to_be_bytes())));
        all.extend(self.local_pref.iter().flat_map(|pref| attribute(LOCAL_PREF, &pref.to_be_bytes())));
        all.extend(&self.extra);
        all
    }
}

/// A TABLE_DUMP_V2 record for 10.0.0.0/8.
fn rib4(subtype: u16, entries: &[Vec<u8>]) -> Vec<u8> {
    let head = [&[0, 0, 0, 1, 8, 10][..], &(entries.len() as u16).to_be_bytes()].concat();
    record(13, subtype, &[head, entries.concat()].concat())
}

fn entry(peer: u16, attributes: &[u8]) -> Vec<u8> {
    let head = [&peer.to_be_bytes()[..], &[0; 4], &(attributes.len() as u16).to_be_bytes()].concat();
    [&head, attributes].concat()
}

fn v2(paths: &[Path4]) -> Vec<u8> {
    let entries: Vec<_> = paths.iter().map(|path| entry(path.peer, &path.attributes(4))).collect();
    [peers(4), rib4(2, &entries)].concat()
}

fn v1(paths: &[Path4]) -> Vec<u8> {
    let one = |path: &Path4| {
        let attributes = path.attributes(2);
        let peer = [192, 0, 2, path.peer as u8 + 1];
        let head = [&[0, 0, 0, 1, 10, 0, 0, 0, 8, 1, 0, 0, 0, 0][..], &peer, &[0xfb, 0xf4]].concat();
        record(12, 1, &[&head[..], &(attributes.len() as u16).to_be_bytes(), &attributes].concat())
    };
    paths.iter().flat_map(one).collect()
}

fn load(bytes: &[u8]) -> Result<Loaded, String> {
    feed::read(bytes, Path::new("dump"), &Options::default()).map_err(|error| error.to_string())
}

fn next_hop(bytes: &[u8]) -> Option<IpAddr> {
    let table = load(bytes).unwrap().table;
    let hop = table.inet.get("10.0.0.0/8".parse().unwrap()).unwrap();
    match table.next_hops.target(hop) {
        Some(Target::Gateway(ip)) => Some(ip),
        _ => None,
    }
}

/// The peer whose path wins, in every order and, if `old` is set, in both versions of the dump.
fn winner(paths: [Path4; 3], old: bool) -> u16 {
    let winners: Vec<_> = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
        .iter()
        .map(|order| order.map(|i: usize| paths[i].clone()))
        .flat_map(|paths| [Some(next_hop(&v2(&paths))), old.then(|| next_hop(&v1(&paths)))])
        .flatten()
        .collect();
    assert!(winners.windows(2).all(|pair| pair[0] == pair[1]), "{winners:?}");
    match winners[0] {
        Some(IpAddr::V4(ip)) => u16::from(ip.octets()[3]) - 1,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_highest_local_preference_wins_over_a_shorter_path() {
    let preferred = Path4 { local_pref: Some(200), ..path(1, &[1, 2, 3]) };
    assert_eq!(winner([path(0, &[1]), preferred, path(2, &[2])], true), 1);
    // A missing LOCAL_PREF counts as 100.
    let less = |peer| Path4 { local_pref: Some(99), ..path(peer, &[1]) };
    assert_eq!(winner([less(0), path(1, &[1, 2]), less(2)], true), 1);
}

#[test]
fn then_the_shortest_path_then_the_lowest_origin() {
    assert_eq!(winner([path(0, &[1, 2]), path(1, &[1, 2, 3]), path(2, &[9, 8])], false), 2);
    assert_eq!(winner([path(0, &[1, 2]), path(1, &[1]), path(2, &[9, 8])], true), 1);
    let origin = |origin, peer| Path4 { origin, ..path(peer, &[1]) };
    assert_eq!(winner([origin(2, 0), origin(1, 1), origin(2, 2)], true), 1);
}

#[test]
fn med_decides_within_one_neighbour_as_only() {
    let med = |peer, asn, med| Path4 { med: Some(med), ..path(peer, &[asn]) };
    // Peer 3 has the lowest identifier, then 2, then 1; in TABLE_DUMP the lowest address decides instead.
    assert_eq!(winner([med(1, 7, 5), med(2, 7, 6), med(0, 7, 9)], true), 1);
    // 1 beats 2 by MED, although the identifier of 2 would beat that of 0 in another AS; then 1 beats 0 by identifier.
    assert_eq!(winner([med(1, 7, 5), med(2, 7, 6), med(0, 8, 9)], false), 1);
    // A missing MED counts as 0, which is best.
    assert_eq!(winner([med(1, 7, 5), med(2, 7, 6), path(0, &[7])], true), 0);
}

#[test]
fn the_identifier_and_the_address_decide_last() {
    let paths = [path(0, &[1]), path(1, &[2]), path(2, &[3])];
    assert_eq!(next_hop(&v2(&paths)), Some([203, 0, 113, 3].into()), "peer 2 has the lowest identifier");
    assert_eq!(
        next_hop(&v1(&paths)),
        Some([203, 0, 113, 1].into()),
        "there are no identifiers, and peer 0 has the lowest address"
    );
    let reflected = Path4 { extra: attribute(ORIGINATOR_ID, &[1, 1, 1, 1]), ..path(0, &[1]) };
    assert_eq!(winner([reflected, path(1, &[2]), path(2, &[3])], false), 0);
}

#[test]
fn additional_paths_compete_too() {
    let with_id = |id: u32, path: &Path4| {
        let attributes = path.attributes(4);
        let head = [&path.peer.to_be_bytes()[..], &[0; 4], &id.to_be_bytes()].concat();
        [&head[..], &(attributes.len() as u16).to_be_bytes(), &attributes].concat()
    };
    let entries = [with_id(1, &path(0, &[1, 2])), with_id(2, &Path4 { peer: 0, ..path(1, &[1]) })];
    let dump = [peers(1), rib4(8, &entries)].concat();
    assert_eq!(load(&dump).unwrap().report.inet, 1);
    assert_eq!(next_hop(&dump), Some([203, 0, 113, 1].into()));
}

#[test]
fn the_next_hop_is_that_of_the_path_or_the_address_of_the_peer() {
    let bare = |extra: &[u8]| {
        let attributes = [attribute(ORIGIN, &[0]), attribute(AS_PATH, &[]), extra.to_vec()].concat();
        [peers(2), rib4(2, &[entry(1, &attributes)])].concat()
    };
    assert_eq!(next_hop(&bare(&[])), Some([192, 0, 2, 2].into()));
    assert_eq!(next_hop(&bare(&attribute(NEXT_HOP, &[0, 0, 0, 0]))), Some([192, 0, 2, 2].into()));
    let v6: Ipv6Addr = "2001:db8::5".parse().unwrap();
    let reach = attribute(MP_REACH, &[&[16], &v6.octets()[..]].concat());
    assert_eq!(next_hop(&bare(&reach)), Some(v6.into()), "RFC 8950");
}

/// A dump with 2001:db8::/32 from an IPv4 peer.
fn v6_dump(attributes: &[u8]) -> Vec<u8> {
    let head = [0, 0, 0, 1, 32, 0x20, 0x01, 0x0d, 0xb8, 0, 1];
    [peers(1), record(13, 4, &[&head[..], &entry(0, attributes)].concat())].concat()
}

#[test]
fn an_ipv6_route_never_gets_an_ipv4_next_hop() {
    let global: Ipv6Addr = "2001:db8::5".parse().unwrap();
    let local: Ipv6Addr = "fe80::5".parse().unwrap();
    let reach = attribute(MP_REACH, &[&[32], &global.octets()[..], &local.octets()].concat());
    let Loaded { table, report } = load(&v6_dump(&reach)).unwrap();
    assert_eq!((report.inet6, report.without_next_hop), (1, 0));
    assert_eq!(table.next_hops.iter().next().unwrap().1, Target::Gateway(global.into()));
    let Loaded { table, report } = load(&v6_dump(&attribute(ORIGIN, &[0]))).unwrap();
    assert_eq!((report.inet6, report.without_next_hop), (1, 1));
    assert!(matches!(table.next_hops.iter().next().unwrap().1, Target::Number(_)));
}

#[test]
fn records_that_are_not_unicast_routes_are_skipped_and_counted() {
    let multicast = rib4(3, &[entry(0, &path(0, &[1]).attributes(4))]);
    let dump = [v2(&[path(0, &[1])]), multicast, record(16, 4, &[1, 2, 3]), record(13, 6, &[])].concat();
    let report = load(&dump).unwrap().report;
    assert_eq!((report.format, report.records, report.skipped, report.inet), (Format::Mrt, 5, 3, 1));
    let options = Options { family: Some(Family::Inet6), ..Options::default() };
    assert!(feed::read(dump.as_slice(), Path::new("dump"), &options).is_err(), "the dump has no IPv6 route");
}

#[test]
fn a_malformed_path_counts_as_withdrawn() {
    let bad_next_hop =
        [attribute(ORIGIN, &[0]), attribute(AS_PATH, &[]), attribute(NEXT_HOP, &[1, 2])].concat();
    let entries = [entry(0, &bad_next_hop), entry(1, &path(1, &[1, 2, 3]).attributes(4))];
    let dump = [peers(2), rib4(2, &entries)].concat();
    assert_eq!(load(&dump).unwrap().report.malformed_paths, 1);
    assert_eq!(next_hop(&dump), Some([203, 0, 113, 2].into()));
}

/// In both versions of the dump: the list says that its AS_PATH is longer than the list, or that a number has five bytes.
#[test]
fn a_path_whose_attributes_do_not_end_where_they_say_counts_as_withdrawn() {
    let sound = path(1, &[1, 2, 3]);
    let mut overrun = attribute(ORIGIN, &[0]);
    overrun.extend([0x40, AS_PATH, 200, 2, 0]);
    let mut cut = path(0, &[1]).attributes(4);
    cut.extend([0x40, LOCAL_PREF]);
    let long = |kind| [path(0, &[1]).attributes(4), attribute(kind, &[0xff; 5])].concat();
    for bad in [overrun, cut, long(MED), long(LOCAL_PREF)] {
        for entries in [
            [entry(0, &bad), entry(1, &sound.attributes(4))],
            [entry(1, &sound.attributes(4)), entry(0, &bad)],
        ] {
            let dump = [peers(2), rib4(2, &entries)].concat();
            assert_eq!(load(&dump).unwrap().report.malformed_paths, 1, "{bad:02x?}");
            assert_eq!(next_hop(&dump), Some([203, 0, 113, 2].into()));
        }
    }
    let mut old = path(0, &[1]);
    old.extra = vec![0x40, LOCAL_PREF, 9, 1];
    let dump = v1(&[old, sound]);
    assert_eq!(
        (load(&dump).unwrap().report.malformed_paths, next_hop(&dump)),
        (1, Some([203, 0, 113, 2].into()))
    );
    let extended = [path(0, &[1]).attributes(4), vec![0x50, LOCAL_PREF, 0, 4, 0, 0, 0, 9]].concat();
    let dump = [peers(1), rib4(2, &[entry(0, &extended)])].concat();
    assert_eq!(load(&dump).unwrap().report.malformed_paths, 0, "a length of two bytes");
}

#[test]
fn the_next_hop_of_the_other_family_means_nothing_beside_that_of_the_route() {
    let global: Ipv6Addr = "2001:db8::5".parse().unwrap();
    let reach = attribute(MP_REACH, &[&[16], &global.octets()[..]].concat());
    let begin = [attribute(ORIGIN, &[0]), attribute(AS_PATH, &[]), attribute(NEXT_HOP, &[0; 4])].concat();
    let Loaded { table, report } = load(&v6_dump(&[begin.clone(), reach].concat())).unwrap();
    assert_eq!((report.inet6, report.malformed_paths), (1, 0));
    assert_eq!(table.next_hops.iter().next().unwrap().1, Target::Gateway(global.into()));
    assert!(load(&v6_dump(&begin)).is_err(), "the only path is malformed");
}

/// Also where all records are whole, so that only the end of the packed file is missing.
#[test]
fn a_packed_dump_that_is_cut_short_anywhere_is_an_error() {
    let whole = v2(&[path(0, &[1]), path(1, &[2])]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&whole).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&whole).unwrap();
    for packed in [gzip.finish().unwrap(), bzip2.finish().unwrap()] {
        assert!(load(&packed).is_ok());
        for length in 5..packed.len() {
            assert!(load(&packed[..length]).is_err(), "cut to {length} of {}", packed.len());
        }
        let second = [&packed[..], &packed[..6]].concat();
        assert!(load(&second).is_err(), "a second part that is cut short");
    }
}

#[test]
fn damage_is_reported_with_its_byte() {
    let whole = v2(&[path(0, &[1]), path(1, &[2])]);
    let start = peers(4).len();
    for length in (13..whole.len()).filter(|length| *length != start) {
        let error =
            load(&whole[..length]).err().unwrap_or_else(|| panic!("cut to {length} bytes, and taken"));
        let record = if length < start { 0 } else { start };
        assert!(error.starts_with(&format!("dump, byte {record}: ")), "{error}");
        assert!(error.ends_with("fetch it again"), "{error}");
    }
    let stranger = [peers(1), rib4(2, &[entry(7, &path(0, &[1]).attributes(4))])].concat();
    assert!(load(&stranger).err().unwrap().contains("peer 7 is not in the peer index table"));
    let too_early = rib4(2, &[entry(0, &path(0, &[1]).attributes(4))]);
    assert!(load(&too_early).err().unwrap().contains("routes before the peer index table"));
    let mut short = rib4(2, &[entry(0, &path(0, &[1]).attributes(4))]);
    short[12 + 7] = 2;
    let error = load(&[peers(1), short].concat()).err().unwrap();
    assert!(error.contains("10.0.0.0/8 has 2 paths, but only 1 can be read"), "{error}");
}
