//! Checks the numbers of routing tables.

use crate::config::error::{PlanError, ensure_plan};
use crate::route::{LOCAL_TABLE, MAIN_TABLE};

/// Refuses numbers that have a meaning of their own in the kernel. `what` names the key.
pub fn table_number(number: u32, what: &str) -> Result<u32, PlanError> {
    let is_free = (1..=65_535).contains(&number) && number != LOCAL_TABLE;
    ensure_plan!(
        is_free,
        "{what}: {number} cannot be a table's; give 1 to 65535, but not {LOCAL_TABLE}; the main one is {MAIN_TABLE}"
    );
    Ok(number)
}
