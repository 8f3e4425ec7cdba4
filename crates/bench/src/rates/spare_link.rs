//! The second link between the router and the right host, which takes over when the first one fails.

use fullview_table::Family;

use super::bed_addresses::{BedLink, ROUTER, gateways, link_prefix_len, station};
use super::cable::{cable, up};
use super::error::RatesError;
use super::frame::{DEVICE, SINK, STATION};
use crate::testbed::Namespace;

/// The router's interface, and that of the right host.
pub const SPARE: &str = "spare";
pub const SPARE_HOST: &str = "eth1";

/// Adds the link.
pub fn add(router: &Namespace, right: &Namespace, family: Family) -> Result<(), RatesError> {
    router.batch(&cable(SPARE, (right, SPARE_HOST), [DEVICE, SINK]))?;
    up(right, SPARE_HOST)?;
    up(router, SPARE)?;
    let neighbor = |gateway| format!("neighbor add {gateway} lladdr {STATION} dev {SPARE} nud permanent\n");
    let (own, len) = (station(family, BedLink::Spare, ROUTER), link_prefix_len(family));
    let neighbors = gateways(family, BedLink::Spare).map(neighbor).concat();
    let lines = format!("address add {own}/{len} dev {SPARE} nodad\n{neighbors}");
    Ok(router.batch(&lines)?)
}
