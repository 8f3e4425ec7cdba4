//! Bytes that no process of this version sends.

use fullview_filter::handover::{FORMAT, ImportError, ImportSummary};
use fullview_filter::packet::{Direction, Packet, Pass};
use proptest::prelude::*;

use crate::mapping::change;
use crate::{Firewall, address};

const RULES: &str = "block all\npass in from <bad>\npass out proto udp keep state (max-src-states 9)\n";
/// The kind, the length and the format.
const FIRST: usize = 9;

fn exported() -> Vec<u8> {
    let mut firewall = Firewall::new(RULES, 8);
    change(&mut firewall, "bad", &["192.0.2.1", "2001:db8::/32"]);
    for port in 1..=5 {
        let pass = Pass { direction: Direction::Out, interface: 1, received_on: 0 };
        let ends = [(address("10.0.0.1"), port), (address("198.51.100.2"), 53)];
        assert!(firewall.passes(&Packet::udp(pass, ends[0], ends[1])));
    }
    firewall.export()
}

/// A worker that was fed with anything has states that can be used.
fn take(bytes: &[u8]) -> (ImportSummary, Result<(), ImportError>) {
    let mut firewall = Firewall::new(RULES, 8);
    let taken = firewall.import(bytes, 100);
    assert_eq!(firewall.worker.states().len(), taken.0.states as usize);
    let again = Firewall::new(RULES, 8).import(&firewall.export(), 1 << 20);
    assert_eq!(again.1, Ok(()));
    firewall.wait(u64::from(u32::MAX) / 2);
    taken
}

#[test]
fn what_came_before_an_early_end_stays() {
    let bytes = exported();
    assert_eq!(take(&bytes), (ImportSummary { states: 5, tables: 1, ..ImportSummary::default() }, Ok(())));
    let mut counts = Vec::new();
    for end in 0..bytes.len() {
        let (summary, result) = take(&bytes[..end]);
        assert!(matches!(result, Err(ImportError::EndsEarly(at)) if at <= end as u64), "{end} {result:?}");
        counts.push((summary.tables, summary.states));
    }
    counts.dedup();
    assert_eq!(counts, [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]);
}

#[test]
fn another_format_is_refused() {
    let mut bytes = exported();
    bytes[FIRST - 4] += 1;
    assert_eq!(take(&bytes).1, Err(ImportError::OtherFormat(FORMAT + 1)));
    assert_eq!(take(&bytes[FIRST..]).1, Err(ImportError::Damaged(0)));
    let after_the_end = [exported(), exported()].concat();
    assert_eq!(take(&after_the_end).1, Err(ImportError::Damaged(exported().len() as u64)));
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32).to_le_bytes()[..], body].concat()
}

#[test]
fn a_table_has_as_many_entries_as_it_said() {
    let format = &exported()[..FIRST];
    let table = |entries: u32| message(4, &[&entries.to_le_bytes()[..], b"bad"].concat());
    let entry = |length: u8| message(5, &[&[0; 16][..], &[length, 0, 0, 0, 0, 0]].concat());
    let after = |messages: &[Vec<u8>]| take(&[format, &messages.concat()].concat());
    let (end, whole) = (message(8, &[]), ImportSummary { tables: 1, ..ImportSummary::default() });
    assert_eq!(after(&[table(1), entry(128), end.clone()]), (whole, Ok(())));
    assert_eq!(after(&[table(0), end.clone()]), (whole, Ok(())));
    for wrong in [
        vec![table(2), entry(128), end.clone()],
        vec![table(2), entry(128), table(0), end.clone()],
        vec![entry(128), end.clone()],
        vec![table(1), entry(129), end.clone()],
    ] {
        let (summary, result) = after(&wrong);
        assert!(
            summary.tables == 0 && matches!(result, Err(ImportError::Damaged(_))),
            "{wrong:?}: {result:?}"
        );
    }
    assert!(matches!(after(&[table(0), entry(128), end]).1, Err(ImportError::Damaged(_))));
    let first = Err(ImportError::Damaged(FIRST as u64));
    assert_eq!(after(&[table(u32::MAX), entry(128)]).1, first, "no table has so many");
    let too_many = vec![table(0); 1 << 16 | 1];
    let of_last = FIRST + (too_many.len() - 1) * table(0).len();
    assert_eq!(after(&too_many).1, Err(ImportError::Damaged(of_last as u64)));
}

#[test]
fn a_message_that_is_too_long_is_not_waited_for() {
    let bytes = [&exported()[..FIRST], &[2, 0, 0, 0, 1], &[0; 1000]].concat();
    assert_eq!(take(&bytes).1, Err(ImportError::Damaged(FIRST as u64)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = exported();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let _ = take(&bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = take(&[&exported()[..FIRST], &bytes].concat());
    }
}
