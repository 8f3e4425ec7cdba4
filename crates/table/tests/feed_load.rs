//! Loading: format and compression are detected by content, and errors name the place and how to fix it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

use std::fs;
use std::io::Write;
use std::path::Path;

use fullview_table::feed::{
    self, Compression, Fault, Format, LoadReport, Loaded, NextHopModel, Options,
    write::{Dialect, write},
};
use fullview_table::{Family, NextHop, Prefix, Table, Target};
use fullview_testnet::shared;

fn load(content: impl AsRef<[u8]>) -> Result<Loaded, String> {
    load_with(content, &Options::default())
}

fn load_with(content: impl AsRef<[u8]>, options: &Options) -> Result<Loaded, String> {
    feed::read(content.as_ref(), Path::new("feed"), options).map_err(|error| error.to_string())
}

fn message(content: impl AsRef<[u8]>) -> String {
    load(content).err().expect("an error")
}

fn inet(prefix: &str) -> Prefix<u32> {
    prefix.parse().unwrap()
}

fn target(table: &Table, prefix: &str) -> Option<Target> {
    table.next_hops.target(table.inet.get(inet(prefix)).unwrap())
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn a_line_is_a_prefix_with_an_optional_next_hop() {
    let text = "# a comment\r\n\r\n10.0.0.0/8 192.0.2.1\r\n  10.1.0.0/16\t2001:db8::1 # v6 router\n10.2.0.0/16 7\n\
        10.3.0.0/16 unreachable\n2001:db8::/32";
    let Loaded { table, report } = load(text).unwrap();
    assert_eq!(target(&table, "10.0.0.0/8"), Some(Target::Gateway([192, 0, 2, 1].into())));
    assert_eq!(target(&table, "10.1.0.0/16"), Some(Target::Gateway("2001:db8::1".parse().unwrap())));
    assert_eq!(target(&table, "10.2.0.0/16"), Some(Target::Number(7)));
    assert_eq!(table.inet.get(inet("10.3.0.0/16")), Some(NextHop::NONE));
    let expected = LoadReport {
        format: Format::Text,
        compression: Compression::None,
        inet: 4,
        inet6: 1,
        without_next_hop: 1,
        records: 7,
        skipped: 0,
        malformed_paths: 0,
    };
    assert_eq!(report, expected);
}

#[test]
fn compression_is_detected_by_content_and_may_have_several_parts() {
    let (one, two) = (b"10.0.0.0/8\n10.1".as_slice(), b".0.0/16\n".as_slice());
    type Pack = fn(&[u8]) -> Vec<u8>;
    let packings: [(Pack, Compression); 3] =
        [(gzip, Compression::Gzip), (bzip2, Compression::Bzip2), (zstd, Compression::Zstd)];
    for (pack, compression) in packings {
        let Loaded { table, report } = load([pack(one), pack(two)].concat()).unwrap();
        assert_eq!((table.inet.len(), report.compression), (2, compression));
    }
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let Loaded { report, .. } = load([&zstd(one), skippable.as_slice(), &zstd(two)].concat()).unwrap();
    assert_eq!(report.inet, 2);
}

#[test]
fn a_packed_file_cut_short_anywhere_or_damaged_is_an_error() {
    let content: String = (0..500).map(|i| format!("10.{}.{}.0/24\n", i / 256, i % 256)).collect();
    for packed in [gzip(content.as_bytes()), bzip2(content.as_bytes()), zstd(content.as_bytes())] {
        for length in (5..packed.len()).step_by(packed.len() / 40 + 1) {
            assert!(load(&packed[..length]).is_err(), "cut to {length}");
        }
        let mut flipped = packed.clone();
        flipped[packed.len() / 2] ^= 0x10;
        assert!(load(&flipped).is_err(), "one bit flipped");
    }
    let cut = message(&gzip(content.as_bytes())[..200]);
    assert!(cut.starts_with("feed, byte ") && cut.ends_with("fetch it again"), "{cut}");
}

#[test]
fn each_fault_names_its_place_and_how_to_fix_it() {
    let long = format!("10.0.0.0/8\n{}", "1".repeat(1 << 20));
    let cases: [(&[u8], &str); 16] = [
        (b"", "feed: is empty; was it fetched completely?"),
        (b"# nothing\n", "feed: holds no single route; check the file"),
        (
            b"10.0.0.0/8\n10.0.0.1/9\n",
            "feed, line 2: 10.0.0.1/9 has bits set beyond its length; the prefix that contains it is 10.0.0.0/9",
        ),
        (b"10.0.0.0\n", "feed, line 1: \"10.0.0.0\" is not a prefix: write address/length"),
        (b"10.0.0.0/33\n", "feed, line 1: prefix length \"33\" is not a number from 0 to 32"),
        (
            b"2001:db8::/32 192.0.2.1\n",
            "feed, line 1: next hop 192.0.2.1 is an IPv4 address, but the route is IPv6",
        ),
        (b"10.0.0.0/8 +7\n", "feed, line 1: next hop \"+7\" is not an address"),
        (b"10.0.0.0/8 4294967296\n", "feed, line 1: next hop \"4294967296\" is not an address"),
        (b"10.0.0.0/8 7 8\n", "feed, line 1: \"8\" follows the last field"),
        (b"10.0.0.0/8\n\n11.0.0.0/8\n10.0.0.0/8\n", "feed, line 4: repeats 10.0.0.0/8 from line 1;"),
        (b"10.0.0.0/8\n\x00\n", "feed, line 2: this is not text"),
        (b"10.0.0.0/8 # \xff\x00\n", "feed, line 1: this is not text"),
        (b"\xff\xfe\x31\xc3\n", "feed, line 1: this is not text"),
        (long.as_bytes(), "feed, line 2: the line is longer than 8192 bytes"),
        (&[0xff; 20_000], "feed, line 1: the line is longer than 8192 bytes"),
        (
            &[0, 0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 0],
            "feed, byte 0: this MRT file starts with BGP4MP (type 16, subtype 4)",
        ),
    ];
    for (content, expected) in cases {
        let found = message(content);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn unreadable_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| feed::load(path, &Options::default()).err().unwrap();
    assert!(matches!(error(folder.path()).fault, Fault::Directory));
    let missing = error(&folder.path().join("none"));
    assert!(matches!(missing.fault, Fault::Open(_)));
    assert!(missing.to_string().contains("none: cannot be opened"), "{missing}");
}

#[test]
fn a_family_can_be_asked_for() {
    let mixed = "10.0.0.0/8\n2001:db8::/32\n2001:db9::/32\n";
    let only = |family| Options { family: Some(family), ..Options::default() };
    let report = load_with(mixed, &only(Family::Inet6)).unwrap().report;
    assert_eq!((report.inet, report.inet6, report.skipped), (0, 2, 1));
    let none = load_with("10.0.0.0/8\n", &only(Family::Inet6)).err().unwrap();
    assert_eq!(none, "feed: holds no inet6 route (but others); check the file and the family asked for");
}

#[test]
fn the_bounds_on_routes_and_next_hops_hold() {
    let options = Options { max_routes: 2, ..Options::default() };
    assert!(load_with("10.0.0.0/8\n11.0.0.0/8\n", &options).is_ok());
    let error = load_with("10.0.0.0/8\n11.0.0.0/8\n::/0\n", &options).err().unwrap();
    assert_eq!(error, "feed, line 3: more than 2 routes; raise the limit if this is meant");
    let many: String = (0..65_535).map(|i| format!("10.{}.{}.0/24 {i}\n", i / 256, i % 256)).collect();
    let error = message(many);
    assert!(error.starts_with("feed, line 65535: 65534 would be next hop number 65535"), "{error}");
}

#[test]
fn the_next_hop_model_assigns_exactly_its_count_in_runs_of_its_mean() {
    let text: String = (0..40_000).map(|i| format!("10.{}.{}.0/24\n", i / 256, i % 256)).collect();
    for (count, mean_run) in [(1, 1.0), (64, 4.0), (1000, 30.0), (40_000, 1.0), (5_000, 1e6)] {
        let next_hops = NextHopModel { count, mean_run, seed: 3 };
        let options = Options { next_hops, ..Options::default() };
        let table = load_with(&text, &options).unwrap().table;
        assert_eq!(table.inet.summary().next_hops, usize::from(count), "{count} in runs of {mean_run}");
        assert_eq!(table.next_hops.len(), usize::from(count));
    }
}

#[test]
fn run_lengths_have_the_mean_asked_for() {
    let text: String = (0..40_000).map(|i| format!("10.{}.{}.0/24\n", i / 256, i % 256)).collect();
    let next_hops = NextHopModel { count: 60_000, mean_run: 8.0, seed: 1 };
    // There are so many next hops that the model needs more runs than the mean gives: every route starts one.
    let options = Options { next_hops, ..Options::default() };
    assert_eq!(load_with(&text, &options).unwrap().table.inet.summary().next_hops, 40_000);
    let options = Options { next_hops: NextHopModel { count: 500, ..next_hops }, ..Options::default() };
    let table = load_with(&text, &options).unwrap().table;
    let hops: Vec<_> = table.inet.iter().map(|route| route.next_hop).collect();
    let runs = 1 + hops.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((4_800..5_200).contains(&runs), "{runs} runs where 5000 are expected");
}

#[test]
fn an_impossible_model_is_refused() {
    for next_hops in [
        NextHopModel { count: 0, ..NextHopModel::default() },
        NextHopModel { count: u16::MAX, ..NextHopModel::default() },
        NextHopModel { mean_run: 0.5, ..NextHopModel::default() },
        NextHopModel { mean_run: f64::NAN, ..NextHopModel::default() },
    ] {
        let error = load_with("10.0.0.0/8\n", &Options { next_hops, ..Options::default() }).err().unwrap();
        assert!(error.contains("the next-hop model has"), "{error}");
    }
}

#[test]
fn progress_ends_at_the_length_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let packed = gzip("10.0.0.0/8\n".as_bytes());
    fs::write(&path, &packed).unwrap();
    let last = std::cell::Cell::new((0, 0));
    let tell = |done, total| last.set((done, total));
    feed::load(&path, &Options { on_progress: Some(&tell), ..Options::default() }).unwrap();
    assert_eq!(last.get(), (packed.len() as u64, packed.len() as u64));
}

fn written(table: &Table, dialect: Dialect) -> String {
    let mut out = Vec::new();
    write(table, dialect, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_output_is_read_back_equal() {
    let text =
        "0.0.0.0/0 192.0.2.1\n10.0.0.0/8 7\n10.0.0.0/9 unreachable\n10.1.0.0/16 2001:db8::1\n::/0 fe80::1\n";
    assert_eq!(written(&load(text).unwrap().table, Dialect::Text), text);
}

#[test]
fn bird_and_ip_get_every_route_in_their_syntax() {
    use fullview_table::feed::write::Numbers::{Blackhole, TestAddresses};
    let table = load("10.0.0.0/8 7\n10.0.0.0/9 unreachable\n10.1.0.0/16 2001:db8::1\n2001:db8::/32 0\n")
        .unwrap()
        .table;
    assert_eq!(
        written(&table, Dialect::Bird(TestAddresses)),
        "protocol static fullview4 {\n\tipv4;\n\troute 10.0.0.0/8 via 198.18.0.8;\n\troute 10.0.0.0/9 unreachable;\n\
        \troute 10.1.0.0/16 via 2001:db8::1;\n}\nprotocol static fullview6 {\n\tipv6;\n\
        \troute 2001:db8::/32 via 2001:2::1;\n}\n"
    );
    assert_eq!(
        written(&table, Dialect::IpBatch(Blackhole)),
        "route add blackhole 10.0.0.0/8\nroute add unreachable 10.0.0.0/9\n\
        route add 10.1.0.0/16 via inet6 2001:db8::1\nroute add blackhole 2001:db8::/32\n"
    );
    let far = load("10.0.0.0/8 131070\n").unwrap().table;
    let error = write(&far, Dialect::Bird(TestAddresses), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("next hop number 131070 has no address"), "{error}");
}

#[test]
fn the_real_table_loads_whole() {
    let Some(path) = shared::data("tables/full-view-2025.txt.gz") else { return };
    let Loaded { table, report } = feed::load(&path, &Options::default()).unwrap();
    assert_eq!((report.inet, report.inet6, report.compression), (901_899, 160_147, Compression::Gzip));
    assert_eq!((table.inet.summary().next_hops, table.inet6.summary().next_hops), (64, 64));
    let again = load(written(&table, Dialect::Text)).unwrap().table;
    assert!(table.inet.iter().map(|route| route.prefix).eq(again.inet.iter().map(|route| route.prefix)));
    assert!(table.inet6.iter().map(|route| route.prefix).eq(again.inet6.iter().map(|route| route.prefix)));
}
