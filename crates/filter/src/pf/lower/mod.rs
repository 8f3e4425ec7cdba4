//! Turns rules into the compiled form. What that cannot express is refused, so that no rule is left out silently.

mod conditions;
mod filter;
mod names;
mod peers;
mod states;
mod support;
mod timeouts;
mod translations;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address_table::{AddressTable, TableEntry};
use crate::interfaces::Interfaces;
use crate::pf::config::{PfConfig, PfOption, PfSetting, TableDefinition};
use crate::pf::error::PfResult;
use crate::ruleset::{Language, RuleSetParts};
use crate::state::WorkerLimits;
use names::PfNames;

/// A rule set as workers need it.
#[derive(Debug, Clone)]
pub struct LoweredPf {
    pub parts: RuleSetParts,
    pub limits: WorkerLimits,
    /// The names of the tables, by their numbers.
    pub tables: Vec<String>,
    /// The names of the tags, by their numbers.
    pub tags: BTreeMap<u16, String>,
}

/// Lowers a rule set for a machine with these interfaces.
pub fn lower(config: &PfConfig, interfaces: &Interfaces) -> PfResult<LoweredPf> {
    lower_for(config, interfaces, None)
}

/// As [`lower`], with room for so many states, if it is given, in place of what the configuration says. Where timeouts begin to shrink
/// follows from it.
pub fn lower_for(config: &PfConfig, interfaces: &Interfaces, states: Option<u32>) -> PfResult<LoweredPf> {
    support::options(config, states.is_none())?;
    support::loaded(&config.loaded)?;
    let mut names = PfNames::new(config, interfaces);
    let mut parts = RuleSetParts::new(Language::Pf);
    let mut limits = timeouts::limits(config);
    limits.states = states.unwrap_or(limits.states);
    timeouts::set(config, &limits, &mut parts);
    parts.skip = skip(config, interfaces);
    parts.translations = translations::translations(&config.rules, &mut names)?;
    let filter = filter::Filter::lower(config, &mut names, parts.timeouts)?;
    (parts.rules, parts.timeouts) = (filter.rules, filter.timeouts);
    parts.tables = names.tables().map(|definition| Arc::new(table(definition))).collect();
    parts.named_tables = names.named_tables();
    Ok(LoweredPf { parts, limits, tables: names.table_names(), tags: names.tag_names() })
}

fn skip(config: &PfConfig, interfaces: &Interfaces) -> crate::rule::InterfaceSet {
    let skipped = config.settings.iter().flat_map(|setting| match setting {
        PfSetting::Option { option: PfOption::Skip(names), .. } => names.as_slice(),
        _ => &[],
    });
    skipped.flat_map(|name| interfaces.matching(name)).map(|interface| interface.number).collect()
}

/// A table, empty if rules name it and no line defines it.
fn table(definition: Option<&TableDefinition>) -> AddressTable {
    let entries = definition.into_iter().flat_map(TableDefinition::entries);
    AddressTable::new(entries.map(|entry| TableEntry {
        address: entry.prefix.addr().into(),
        length: entry.prefix.prefix_len(),
        negated: entry.not,
        value: 0,
    }))
}
