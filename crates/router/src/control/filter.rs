//! Requests about the filter of a router without a kernel, and their answers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::table_key::TableKey;

/// The most rules, states or addresses of a page.
pub const MAX_LIMIT: usize = 1000;

fn page() -> usize {
    MAX_LIMIT
}

/// The rules to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FilterQuery {
    /// The index of the first rule of the page.
    #[serde(default)]
    pub from: u32,
    /// The most rules of the page.
    #[serde(default = "page")]
    pub limit: usize,
}

/// The filter, and a page of its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FilterStatus {
    /// pf or ipfw.
    pub language: String,
    pub file: String,
    pub states: UsedRoom,
    /// How many of them each worker has, in an equal share of the room.
    #[serde(default)]
    pub states_by_worker: Vec<u32>,
    pub sources: UsedRoom,
    /// States of connections that were not complete and ended for new ones, because the table was full.
    #[serde(default)]
    pub replaced_states: u64,
    /// Known flows that a program in the kernel forwards. `None` if there is no such program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_flows: Option<KernelFlows>,
    /// Packets that the filter dropped, by reason. Only reasons that occurred.
    pub drops: BTreeMap<String, u64>,
    /// Of all rules, not of the page.
    pub totals: RuleTotals,
    pub tables: Vec<TableSummary>,
    pub rules: Vec<RuleStatus>,
    /// The index of the first rule of the next page. `None` on the last page.
    pub next: Option<u32>,
}

/// How many of something there are, and how many there may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedRoom {
    pub used: u32,
    pub most: u32,
}

/// Known flows that a program in the kernel forwards, and the packets that it has forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFlows {
    pub used: u32,
    pub most: u32,
    pub packets: u64,
}

/// What all rules counted together: a packet counts for a rule in each of its passes, in and out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTotals {
    pub rules: usize,
    pub packets: u64,
    pub bytes: u64,
}

/// A rule, and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RuleStatus {
    /// Its place among all rules, which distinguishes rules of equal number.
    pub index: u32,
    pub number: u32,
    pub packets: u64,
    pub bytes: u64,
    /// The states that it made and that are there now.
    pub states: u32,
    pub labels: Vec<String>,
    pub text: String,
}

/// A table of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSummary {
    pub name: String,
    /// How many addresses and prefixes it has.
    pub addresses: usize,
    /// Only a reload of the rules may change it.
    pub constant: bool,
}

/// The addresses to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TableQuery {
    pub name: String,
    /// The place of the first address of the page.
    #[serde(default)]
    pub from: usize,
    /// The most addresses of the page.
    #[serde(default = "page")]
    pub limit: usize,
}

/// A page of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TablePage {
    pub table: TableSummary,
    pub entries: Vec<String>,
    /// The place of the first address of the next page. `None` on the last page.
    pub next: Option<usize>,
}

/// The address or number to look up in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TableTest {
    pub name: String,
    pub address: TableKey,
}

/// Whether a table contains an address or a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableAnswer {
    pub address: TableKey,
    pub contained: bool,
    /// The entry with the longest prefix that has the address, which decides.
    pub entry: Option<String>,
}

/// How a table changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableAction {
    Add,
    Delete,
    /// The table gets these entries and no others.
    Replace,
}

/// A change of a table. It may come in several parts, each in a request of its own: all at once are applied with the last
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TableChange {
    pub name: String,
    pub action: TableAction,
    /// At most 1,000.
    pub entries: Vec<String>,
    /// Another part follows.
    #[serde(default)]
    pub more: bool,
}

/// What a change of a table did. Before the last part all are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableChanged {
    /// How many entries the change named.
    pub named: usize,
    pub added: usize,
    pub deleted: usize,
    /// How many the table has now.
    pub addresses: usize,
}

/// The states to list. Each condition that is absent holds for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatesQuery {
    /// The number of the entry from which on the page begins.
    #[serde(default)]
    pub from: u32,
    /// The most states of the page.
    #[serde(default = "page")]
    pub limit: usize,
    /// An address or prefix that has an end of the flow, before or after translation.
    #[serde(default)]
    pub host: Option<String>,
    /// The number of the protocol.
    #[serde(default)]
    pub protocol: Option<u8>,
    /// The number of the rule that made the state.
    #[serde(default)]
    pub rule: Option<u32>,
}

/// A page of states. It may be empty, although others follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatesPage {
    pub states: Vec<StateStatus>,
    /// Where the next page begins. `None` on the last page.
    pub next: Option<u32>,
}

/// What a part of a removal of states did. Parts have no limit of states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatesRemoved {
    pub removed: u32,
    /// Where the next part begins. `None` if this was the last one.
    pub next: Option<u32>,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateStatus {
    /// The name of the protocol, or its number if it has none.
    pub protocol: String,
    /// The ends of the flow's first packet, before translation.
    pub source: FlowEnd,
    pub destination: FlowEnd,
    /// What the source or the destination became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated_source: Option<FlowEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated_destination: Option<FlowEnd>,
    /// In which direction the first packet passes: in, out, or both.
    pub direction: String,
    /// The interface that the first packet passed.
    pub interface: String,
    /// Packets by other interfaces do not belong to the state.
    pub bound: bool,
    /// How far the source and the destination have come, in pf's words.
    pub phases: [String; 2],
    pub age_seconds: f64,
    /// How long it lives without another packet.
    pub expires_seconds: f64,
    /// Packets and bytes of both directions.
    pub packets: u32,
    pub bytes: u64,
    /// The rule that made it; `None` if it is gone.
    pub rule: Option<RuleReference>,
}

/// An end of a flow. The port is the identifier of an ICMP query, and zero if the protocol has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnd {
    pub address: IpAddr,
    pub port: u16,
}

/// A rule that is named elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReference {
    pub number: u32,
    pub text: String,
}
