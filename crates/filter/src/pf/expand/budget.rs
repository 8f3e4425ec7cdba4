use std::cell::Cell;

use crate::pf::error::{PfError, PfResult, Position};

/// More rules than this that are not written one by one come from a mistake, and would fill the memory.
const MOST: usize = 100_000;

/// How many rules may be made of those that are written.
pub struct RuleBudget(Cell<usize>);

impl RuleBudget {
    /// The most that may be made beside rules that are written one by one.
    pub fn beside(written: usize) -> RuleBudget {
        RuleBudget(Cell::new(MOST + written))
    }

    /// Takes so many rules; `None` are too many. `by` is what they are made by.
    pub fn take(&self, rules: Option<usize>, position: &Position, by: &str) -> PfResult<()> {
        let left = rules.and_then(|rules| self.0.get().checked_sub(rules));
        let too_many = || {
            let problem =
                format!("{by} up to here stand for more than {MOST} rules beside those that are written");
            PfError::invalid(position, problem, "put addresses into a table")
        };
        self.0.set(left.ok_or_else(too_many)?);
        Ok(())
    }
}
