//! Update traces: every update fits the table it is applied to.
#![no_main]

use std::path::Path;

use fullview_table::feed::updates::{self, FamilyChange};
use fullview_table::{NextHops, Table};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut next_hops = NextHops::default();
    let Ok(all) = updates::read(data, Path::new("input"), &mut next_hops) else { return };
    let good: Vec<_> = all.map_while(Result::ok).collect();
    let mut table = Table { next_hops, ..Table::default() };
    for update in good {
        update.apply(&mut table);
        let (now, wanted) = match update.change {
            FamilyChange::Inet(change) => (table.inet.get(change.prefix), change.next_hop),
            FamilyChange::Inet6(change) => (table.inet6.get(change.prefix), change.next_hop),
        };
        assert_eq!(now, wanted);
        assert_eq!(wanted.and_then(|hop| table.next_hops.target(hop)), update.target);
    }
});
