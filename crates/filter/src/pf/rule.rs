//! A rule after its lists are expanded and its defaults are filled in: what pfctl prints and the kernel gets.

use crate::address::Family;
use crate::packet::Direction;
use crate::pf::address::{OwnerTest, PfPeer};
use crate::pf::error::Position;
use crate::pf::pool::PfPool;
use crate::pf::state_options::StateKeeping;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PfRule {
    pub position: Position,
    pub action: PfAction,
    pub direction: Option<Direction>,
    pub log: Option<PfLog>,
    pub quick: bool,
    pub interface: Option<InterfaceTest>,
    pub family: Option<Family>,
    pub protocol: Option<u8>,
    pub from: PfPeer,
    /// The name of a fingerprint.
    pub os: Option<String>,
    pub to: PfPeer,
    pub user: Option<OwnerTest>,
    pub group: Option<OwnerTest>,
    pub icmp: Option<IcmpTest>,
    pub flags: FlagTest,
    pub state: StateKeeping,
    pub options: RuleOptions,
    pub nat: Option<PfPool>,
    pub rdr: Option<PfPool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PfAction {
    Pass,
    Block(BlockReply),
    Match,
    Scrub,
    NoScrub,
    /// `pass`: the translated packet passes without a look at the filter rules.
    Translate {
        kind: TranslationKind,
        pass: bool,
    },
    NoTranslate(TranslationKind),
    Anchor(AnchorCall),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranslationKind {
    Nat,
    Rdr,
    Binat,
}

/// A rule that leads to other rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnchorCall {
    /// The rules it leads to: those of a translation, or filter rules.
    pub kind: Option<TranslationKind>,
    pub name: Option<String>,
    /// The rules that stand in braces after it.
    pub body: Vec<PfRule>,
}

/// What the sender of a blocked packet gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockReply {
    Drop,
    /// A reset for TCP, else an ICMP error.
    Return,
    Rst {
        /// Zero for the usual one.
        ttl: u8,
    },
    /// The codes of `unreach` messages.
    Icmp {
        code: u8,
        code6: u8,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PfLog {
    /// Every packet of a connection.
    pub all: bool,
    pub user: bool,
    /// The number of the pflog interface.
    pub to: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceTest {
    pub not: bool,
    /// An interface, a group, or `any`.
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpTest {
    pub kind: u8,
    pub code: Option<u8>,
}

/// Of the TCP flags in `of`, exactly those in `set` are set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlagTest {
    pub set: u8,
    pub of: u8,
}

impl FlagTest {
    /// `flags any`
    pub const ANY: FlagTest = FlagTest { set: 0, of: 0 };
    /// `flags S/SA`: the first packet of a connection.
    pub const FIRST: FlagTest = FlagTest { set: 0x02, of: 0x12 };
    /// The letters of the flags, the lowest bit first.
    pub const LETTERS: &str = "FSRPAUEW";
}

/// What may follow the addresses, apart from what list expansion multiplies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleOptions {
    pub received_on: Option<InterfaceTest>,
    pub tos: Option<u8>,
    pub prio: Option<u8>,
    pub max_packet_rate: Option<PacketRate>,
    pub max_packet_size: Option<u16>,
    /// The second one is for packets with low delay and for TCP ACKs without data.
    pub set_prio: Option<(u8, u8)>,
    pub set_tos: Option<u8>,
    pub probability: Option<Probability>,
    pub fragment: bool,
    pub scrub: ScrubOptions,
    pub allow_opts: bool,
    pub labels: Vec<String>,
    pub ridentifier: Option<u32>,
    pub once: bool,
    pub tag: Option<String>,
    pub tagged: Option<TagTest>,
    pub rtable: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRate {
    pub limit: u32,
    pub seconds: u32,
}

/// In parts of 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probability(pub u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagTest {
    pub not: bool,
    pub name: String,
}

/// How packets are changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubOptions {
    pub no_df: bool,
    pub random_id: bool,
    pub min_ttl: Option<u8>,
    pub max_mss: Option<u16>,
    /// Only of `scrub` rules; elsewhere it is `set tos`.
    pub set_tos: Option<u8>,
    pub reassemble_tcp: bool,
    /// `fragment no reassemble`
    pub keep_fragments: bool,
}
