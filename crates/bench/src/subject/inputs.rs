//! What subjects are made from and panels share: tables, flows, keys.

use std::sync::Arc;

use fullview_table::fib::registry::Registered;
use fullview_table::{Rib, Table};

use super::keys::Keys;
use crate::error::BenchError;
use crate::settings::{Settings, TableSettings, TrafficSettings};
use crate::traffic::flow::FlowSet;
use crate::workload::{packets, table};

/// Keys of a stream unless the experiment says otherwise.
pub const KEYS: usize = 1 << 22;

/// Draws kept for each family: the variants of a block may differ in table and traffic.
const DRAWS_KEPT: usize = 4;

/// Tables, flows and keys, each loaded or drawn once.
pub struct Inputs {
    tables: Vec<(TableSettings, Arc<Table>)>,
    inet: FamilyInputs<u32>,
    inet6: FamilyInputs<u128>,
}

/// Flows and keys of one family. The members of a panel share them; the last few draws are kept.
pub struct FamilyInputs<A> {
    flows: Vec<(Draw, Arc<FlowSet<A>>)>,
    keys: Vec<(Draw, usize, Arc<Keys<A>>)>,
}

/// An address family whose flows and keys are kept.
pub trait InputFamily: Registered {
    /// The table's routes of this family.
    fn rib(table: &Table) -> &Rib<Self>;
    /// The draws kept for this family.
    fn kept(inputs: &mut Inputs) -> &mut FamilyInputs<Self>;
}

impl InputFamily for u32 {
    fn rib(table: &Table) -> &Rib<u32> {
        &table.inet
    }
    fn kept(inputs: &mut Inputs) -> &mut FamilyInputs<u32> {
        &mut inputs.inet
    }
}

impl InputFamily for u128 {
    fn rib(table: &Table) -> &Rib<u128> {
        &table.inet6
    }
    fn kept(inputs: &mut Inputs) -> &mut FamilyInputs<u128> {
        &mut inputs.inet6
    }
}

/// What a draw of flows depends on.
#[derive(Clone, PartialEq)]
pub struct Draw {
    table: TableSettings,
    traffic: TrafficSettings,
    seed: u64,
}

impl Draw {
    /// The draw for these settings and this seed.
    pub fn of(settings: &Settings, seed: u64) -> Draw {
        Draw { table: settings.table.clone(), traffic: settings.traffic.clone(), seed }
    }
}

impl<A> FamilyInputs<A> {
    fn new() -> FamilyInputs<A> {
        FamilyInputs { flows: Vec::new(), keys: Vec::new() }
    }
}

impl Inputs {
    /// Nothing loaded yet.
    pub fn new() -> Inputs {
        Inputs { tables: Vec::new(), inet: FamilyInputs::new(), inet6: FamilyInputs::new() }
    }

    /// The table of these settings.
    pub fn table(&mut self, settings: &TableSettings) -> Result<Arc<Table>, BenchError> {
        if let Some((_, table)) = self.tables.iter().find(|(known, _)| known == settings) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(table::load(settings)?);
        self.tables.push((settings.clone(), Arc::clone(&table)));
        Ok(table)
    }

    /// How the report names the tables loaded so far.
    pub fn describe_tables(&self) -> impl Iterator<Item = String> {
        self.tables.iter().map(|(settings, table)| table::describe(settings, table))
    }

    /// The flows of a draw.
    pub fn flows<A: InputFamily>(&mut self, draw: &Draw) -> Result<Arc<FlowSet<A>>, BenchError> {
        if let Some((_, flows)) = A::kept(self).flows.iter().find(|(known, _)| known == draw) {
            return Ok(Arc::clone(flows));
        }
        let table = self.table(&draw.table)?;
        let flows = Arc::new(packets::flows(&draw.traffic, A::rib(&table), draw.seed)?);
        let kept = &mut A::kept(self).flows;
        kept.truncate(DRAWS_KEPT - 1);
        kept.insert(0, (draw.clone(), Arc::clone(&flows)));
        Ok(flows)
    }

    /// Keys to look up, drawn anew for each panel from its seed.
    pub fn keys<A: InputFamily>(
        &mut self,
        settings: &Settings,
        seed: u64,
    ) -> Result<Arc<Keys<A>>, BenchError> {
        let draw = Draw::of(settings, seed);
        let count = settings.lookup.keys.unwrap_or(KEYS);
        let known = A::kept(self).keys.iter().find(|(known, length, _)| *known == draw && *length == count);
        if let Some((.., keys)) = known {
            return Ok(Arc::clone(keys));
        }
        let keys = Arc::new(Keys::drawn(&*self.flows(&draw)?, count, seed));
        let kept = &mut A::kept(self).keys;
        kept.truncate(DRAWS_KEPT - 1);
        kept.insert(0, (draw, count, Arc::clone(&keys)));
        Ok(keys)
    }
}
