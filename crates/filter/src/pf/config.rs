//! A whole rule set.

use ipnet::IpNet;

use crate::pf::error::Position;
use crate::pf::rule::{BlockReply, PfRule};
use crate::pf::state_options::{StateBinding, StateTimeout};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PfConfig {
    /// In the order of the file.
    pub settings: Vec<PfSetting>,
    pub rules: PfRules,
    /// What `load anchor` read, in the order of the file.
    pub loaded: Vec<LoadedAnchor>,
}

/// The rules of each kind, which packets meet in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PfRules {
    pub scrub: Vec<PfRule>,
    pub nat: Vec<PfRule>,
    pub rdr: Vec<PfRule>,
    pub binat: Vec<PfRule>,
    pub filter: Vec<PfRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedAnchor {
    pub name: String,
    pub config: PfConfig,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PfSetting {
    Macro { name: String, value: String },
    Table(TableDefinition),
    Option { position: Position, option: PfOption },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    pub position: Position,
    pub name: String,
    pub constant: bool,
    pub persist: bool,
    pub counters: bool,
    /// Neighbouring lists are one.
    pub sources: Vec<TableSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableSource {
    File { path: String, entries: Vec<PfTableEntry> },
    List(Vec<PfTableEntry>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PfTableEntry {
    /// The prefix is not in the table, though a shorter one is.
    pub not: bool,
    pub prefix: IpNet,
}

impl TableDefinition {
    pub fn entries(&self) -> impl Iterator<Item = &PfTableEntry> {
        self.sources.iter().flat_map(|source| match source {
            TableSource::File { entries, .. } | TableSource::List(entries) => entries,
        })
    }
}

/// `set`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PfOption {
    Skip(Vec<String>),
    Timeout(StateTimeout, u32),
    Limit(PfLimit, u32),
    Optimization(Optimization),
    /// pfctl prints nothing for it.
    RulesetOptimization(RulesetOptimization),
    BlockPolicy(BlockReply),
    FailPolicy(BlockReply),
    StatePolicy(StateBinding),
    /// `None` is `none`.
    LogInterface(Option<String>),
    Debug(DebugLevel),
    Fingerprints(String),
    HostId(u32),
    RequireOrder(bool),
    Reassemble {
        on: bool,
        no_df: bool,
    },
    Syncookies(Syncookies),
    /// pfctl prints nothing for it.
    KeepCounters,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type { $($variant,)* }

        impl $type {
            pub const ALL: &[($type, &str)] = &[$(($type::$variant, $name),)*];

            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}

words! {
    /// What `set limit` bounds.
    PfLimit {
        States "states",
        SourceNodes "src-nodes",
        Fragments "frags",
        Tables "tables",
        TableEntries "table-entries",
        Anchors "anchors",
        EthernetAnchors "eth-anchors",
    }
}

words! {
    /// A set of timeouts.
    Optimization {
        Normal "normal",
        HighLatency "high-latency",
        Satellite "satellite",
        Aggressive "aggressive",
        Conservative "conservative",
    }
}

words! {
    RulesetOptimization {
        None "none",
        Basic "basic",
        Profile "profile",
    }
}

words! {
    DebugLevel {
        None "none",
        Urgent "urgent",
        Misc "misc",
        Loud "loud",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncookies {
    Never,
    Always,
    /// Percentages of the states that may be half open.
    Adaptive {
        start: u8,
        end: u8,
    },
}
