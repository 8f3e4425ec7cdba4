//! The metrics of a filter.

use std::fmt;

use super::page::{Labels, Page, Sample};
use crate::control::filter::{FilterStatus, RuleStatus, TableSummary};

/// Longer texts of rules are cut.
const LONGEST_TEXT: usize = 200;

/// Writes the metrics of a filter. Rules that are not listed count in the totals.
pub fn filter_metrics(filter: &FilterStatus, page: &mut Page<'_>) -> fmt::Result {
    let one = |value: u64| vec![(Labels::new(), value)];
    page.gauges("filter_states", "States of the filter", one(filter.states.used.into()))?;
    page.gauges("filter_states_room", "States that fit", one(filter.states.most.into()))?;
    let of_workers = filter.states_by_worker.iter().zip(0..);
    let each = of_workers
        .map(|(states, worker): (&u32, u32)| (vec![("worker", worker.to_string())], (*states).into()));
    page.gauges("filter_worker_states", "States of a worker, in an equal share of the room", each.collect())?;
    page.gauges("filter_sources", "Sources that rules limit", one(filter.sources.used.into()))?;
    page.gauges("filter_sources_room", "Sources that fit", one(filter.sources.most.into()))?;
    let help = "States of incomplete connections that ended for new ones in the full table";
    page.counts("filter_replaced_states", help, one(filter.replaced_states))?;
    if let Some(flows) = filter.kernel_flows {
        page.gauges("filter_kernel_flows", "Known flows that a program forwards", one(flows.used.into()))?;
        page.gauges("filter_kernel_flows_room", "Known flows that fit there", one(flows.most.into()))?;
        page.counts("filter_kernel_flow_packets", "Packets that it forwarded", one(flows.packets))?;
    }
    page.gauges("filter_rules", "Rules of the filter", one(filter.totals.rules as u64))?;
    let help = "Packets that matched rules, all rules together, in each pass";
    page.counts("filter_packets", help, one(filter.totals.packets))?;
    page.counts("filter_bytes", "Bytes of packets that matched rules", one(filter.totals.bytes))?;
    let table = |table: &TableSummary| (vec![("table", table.name.clone())], table.addresses as u64);
    let help = "Addresses and prefixes in a table";
    page.gauges("filter_table_addresses", help, filter.tables.iter().map(table).collect())?;
    rules(&filter.rules, page)
}

fn rules(rules: &[RuleStatus], page: &mut Page<'_>) -> fmt::Result {
    let each = |figure: fn(&RuleStatus) -> u64| -> Vec<Sample<u64>> {
        rules.iter().map(|rule| (labels(rule), figure(rule))).collect()
    };
    page.counts("filter_rule_packets", "Packets that matched a rule", each(|rule| rule.packets))?;
    page.counts("filter_rule_bytes", "Bytes of packets that matched a rule", each(|rule| rule.bytes))?;
    page.gauges("filter_rule_states", "States that a rule has made", each(|rule| rule.states.into()))
}

fn labels(rule: &RuleStatus) -> Labels {
    let text: String = rule.text.chars().take(LONGEST_TEXT).collect();
    let own = vec![("index", rule.index.to_string()), ("rule", rule.number.to_string()), ("text", text)];
    let named = (!rule.labels.is_empty()).then(|| ("label", rule.labels.join(",")));
    own.into_iter().chain(named).collect()
}
