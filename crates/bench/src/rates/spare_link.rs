//! The second link between the router and the right host, which takes over when the first one fails.

use super::cable::{cable, up};
use super::error::RatesError;
use super::frame::{DEVICE, SINK, STATION};
use super::route_table::SPARE_GATEWAYS;
use crate::testbed::Namespace;

/// The router's interface, and that of the right host.
pub const SPARE: &str = "spare";
pub const SPARE_HOST: &str = "eth1";

/// Adds the link.
pub fn add(router: &Namespace, right: &Namespace) -> Result<(), RatesError> {
    router.batch(&cable(SPARE, (right, SPARE_HOST), [DEVICE, SINK]))?;
    up(right, SPARE_HOST)?;
    up(router, SPARE)?;
    let neighbor = |gateway| format!("neighbor add {gateway} lladdr {STATION} dev {SPARE} nud permanent\n");
    let lines = format!("address add 10.0.3.1/24 dev {SPARE}\n{}", SPARE_GATEWAYS.map(neighbor).concat());
    Ok(router.batch(&lines)?)
}
