//! One routing table of both families.

use crate::nexthop::NextHops;
use crate::rib::Rib;

/// One routing table: the routes of both families and the next hops they share.
///
/// ```
/// use fullview_table::{Table, Target};
///
/// let mut table = Table::default();
/// let gateway = table.next_hops.intern(Target::Gateway("192.0.2.1".parse()?))?;
/// table.inet.announce("198.18.0.0/15".parse()?, gateway);
/// let route = table.inet.longest_match(0xc612_0001).ok_or("no route")?;
/// assert_eq!(table.next_hops.target(route.next_hop), Some(Target::Gateway("192.0.2.1".parse()?)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Table {
    /// IPv4 routes.
    pub inet: Rib<u32>,
    /// IPv6 routes.
    pub inet6: Rib<u128>,
    /// What the next-hop indices of both stand for.
    pub next_hops: NextHops,
}
