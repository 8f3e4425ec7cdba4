//! Rules as they are written, with their lists.

use crate::address::Family;
use crate::packet::Direction;
use crate::pf::address::{InterfaceAddresses, OwnerTest, PortTest};
use crate::pf::config::PfOption;
use crate::pf::error::Position;
use crate::pf::pool::{MapE, PoolChoice};
use crate::pf::rule::{BlockReply, FlagTest, IcmpTest, InterfaceTest, PfLog, RuleOptions, TranslationKind};
use crate::pf::state_options::PfStateOptions;

#[derive(Debug, Clone)]
pub enum Statement {
    Include { position: Position, path: String },
    Macro { name: String, value: String },
    Options { position: Position, options: Vec<PfOption> },
    StateDefaults(PfStateOptions),
    Table(TableSyntax),
    Rule(Box<RuleSyntax>),
    Antispoof(AntispoofSyntax),
    LoadAnchor { position: Position, name: String, path: String },
}

#[derive(Debug, Clone)]
pub struct TableSyntax {
    pub position: Position,
    pub name: String,
    pub constant: bool,
    pub persist: bool,
    pub counters: bool,
    pub sources: Vec<TableSourceSyntax>,
}

#[derive(Debug, Clone)]
pub enum TableSourceSyntax {
    File { position: Position, path: String },
    List(Vec<HostSyntax>),
}

#[derive(Debug, Clone)]
pub struct AntispoofSyntax {
    pub position: Position,
    pub log: Option<PfLog>,
    pub quick: bool,
    pub interfaces: Vec<AntispoofInterface>,
    pub family: Option<Family>,
    pub options: RuleOptions,
}

#[derive(Debug, Clone)]
pub struct AntispoofInterface {
    pub position: Position,
    pub name: String,
    /// In parentheses: the addresses that the interface has when the packet comes.
    pub dynamic: bool,
}

/// A rule of any kind. An empty list stands for everything.
#[derive(Debug, Clone)]
pub struct RuleSyntax {
    pub position: Position,
    pub action: ActionSyntax,
    pub direction: Option<Direction>,
    pub log: Option<PfLog>,
    pub quick: bool,
    pub interfaces: Vec<InterfaceTest>,
    pub family: Option<Family>,
    pub protocols: Vec<u8>,
    pub from: PeerSyntax,
    pub oses: Vec<String>,
    pub to: PeerSyntax,
    pub options: OptionsSyntax,
}

#[derive(Debug, Clone)]
pub enum ActionSyntax {
    Pass,
    /// Without a reply the block policy decides.
    Block(Option<BlockReply>),
    Match,
    Scrub,
    NoScrub,
    Translate {
        kind: TranslationKind,
        pass: bool,
    },
    NoTranslate(TranslationKind),
    Anchor(AnchorSyntax),
}

#[derive(Debug, Clone)]
pub struct AnchorSyntax {
    pub kind: Option<TranslationKind>,
    pub name: Option<String>,
    pub body: Vec<RuleSyntax>,
}

#[derive(Debug, Clone, Default)]
pub struct PeerSyntax {
    pub hosts: Vec<HostSyntax>,
    pub ports: Vec<PortTest>,
}

#[derive(Debug, Clone)]
pub struct HostSyntax {
    pub position: Position,
    pub not: bool,
    pub kind: HostKind,
}

#[derive(Debug, Clone)]
pub enum HostKind {
    Any,
    /// An address or an interface, perhaps with the length of a prefix.
    Name {
        text: String,
        length: Option<u8>,
    },
    Range {
        first: String,
        last: String,
    },
    Table(String),
    Dynamic(InterfaceAddresses),
    NoRoute,
    UrpfFailed,
}

/// What may follow the addresses.
#[derive(Debug, Clone, Default)]
pub struct OptionsSyntax {
    pub users: Vec<OwnerTest>,
    pub groups: Vec<OwnerTest>,
    pub icmp: Vec<(Family, IcmpTest)>,
    pub flags: Option<FlagTest>,
    pub state: Option<StateSyntax>,
    pub common: RuleOptions,
    pub nat: Option<PoolSyntax>,
    pub rdr: Option<PoolSyntax>,
    pub binat: Option<PoolSyntax>,
}

#[derive(Debug, Clone)]
pub enum StateSyntax {
    No,
    Keep(PfStateOptions),
}

#[derive(Debug, Clone)]
pub struct PoolSyntax {
    pub position: Position,
    pub hosts: Vec<HostSyntax>,
    pub port: Option<PoolPortSyntax>,
    pub choice: Option<PoolChoice>,
    pub static_port: bool,
    pub sticky: bool,
    pub map_e: Option<MapE>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPortSyntax {
    One(u16),
    Range(u16, u16),
    /// `first:*`: as many ports as the rule's destination has.
    From(u16),
}
