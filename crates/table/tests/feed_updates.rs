//! Traces of updates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

use std::path::Path;

use fullview_table::feed::updates::{self, FamilyChange};
use fullview_table::{NextHop, NextHops, Table, Target};
use fullview_testnet::shared;

fn read(text: &str) -> Result<Vec<updates::Update>, String> {
    let mut next_hops = NextHops::default();
    let updates = updates::read(text.as_bytes(), Path::new("trace"), &mut next_hops);
    updates.and_then(Iterator::collect).map_err(|error| error.to_string())
}

#[test]
fn announcements_and_withdrawals_change_the_table() {
    let text = "1 a 10.0.0.0/8 192.0.2.1\n1 a 2001:db8::/32 2001:db8::1\n2 a 10.0.0.0/8 192.0.2.2\n3 w 2001:db8::/32\n";
    let mut table = Table::default();
    let updates: Vec<_> = updates::read(text.as_bytes(), Path::new("trace"), &mut table.next_hops)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(updates.iter().map(|update| update.seconds).collect::<Vec<_>>(), [1, 1, 2, 3]);
    assert_eq!(updates[2].target, Some(Target::Gateway([192, 0, 2, 2].into())));
    assert!(matches!(updates[3].change, FamilyChange::Inet6(change) if change.next_hop.is_none()));
    updates.iter().for_each(|update| update.apply(&mut table));
    assert_eq!(table.inet.get("10.0.0.0/8".parse().unwrap()), Some(NextHop(3)));
    assert!(table.inet6.is_empty());
}

#[test]
fn the_first_bad_line_ends_the_trace() {
    let mut next_hops = NextHops::default();
    let text = "1 a 10.0.0.0/8 192.0.2.1\n2 x 10.0.0.0/8\n3 w 10.0.0.0/8\n";
    let mut updates = updates::read(text.as_bytes(), Path::new("trace"), &mut next_hops).unwrap();
    assert!(updates.next().unwrap().is_ok());
    let error = updates.next().unwrap().unwrap_err().to_string();
    assert_eq!(
        error,
        "trace, line 2: \"2 x 10.0.0.0/8\" is not an update; write: unix-time a|w prefix next-hop"
    );
    assert!(updates.next().is_none());
}

#[test]
fn faults_in_a_line_are_reported() {
    for (text, expected) in [
        ("noon a 10.0.0.0/8 192.0.2.1", "is not an update"),
        ("1 a 10.0.0.0/8", "is not an update"),
        ("1 a 10.0.0.1/8 192.0.2.1", "the prefix that contains it is 10.0.0.0/8"),
        ("1 a 10.0.0.0/8 router", "next hop \"router\" is not an address"),
        ("1 a 2001:db8::/32 192.0.2.1", "give an IPv6 next hop"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("trace, line 1: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn the_real_trace_is_read_whole_and_in_order() {
    let Some(path) = shared::data("tables/linx-2014-updates.txt.gz") else { return };
    let mut table = Table::default();
    let updates = updates::load(&path, &mut table.next_hops).unwrap();
    assert_eq!(updates.len(), 23_446);
    assert!(updates.is_sorted_by_key(|update| update.seconds));
    updates.iter().for_each(|update| update.apply(&mut table));
    assert!(!table.inet.is_empty() && table.next_hops.len() > 1);
}
