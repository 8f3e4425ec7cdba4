//! What becomes of a packet.

use crate::address::Address;
use crate::rule::Side;

/// What becomes of a packet, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop(DropReason),
    /// Dropped, and answered.
    Reject(Reject),
    /// Passes with another address.
    Translate(Rewrite),
}

/// Why a filter drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// A rule, or the default rule.
    Rule,
    /// The packet contradicts the state that it belongs to, for example by a sequence number outside the window.
    State,
    /// The table of states is full.
    TableFull,
    /// The rule has as many states as it may have.
    RuleLimit,
    /// The source has as many states or connections as it may have.
    SourceLimit,
    /// No port is free for a translation.
    NoPort,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [DropReason; 6] = [
        DropReason::Rule,
        DropReason::State,
        DropReason::TableFull,
        DropReason::RuleLimit,
        DropReason::SourceLimit,
        DropReason::NoPort,
    ];

    /// The name that telemetry uses.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Rule => "filter_rule",
            DropReason::State => "filter_state",
            DropReason::TableFull => "filter_table_full",
            DropReason::RuleLimit => "filter_rule_limit",
            DropReason::SourceLimit => "filter_source_limit",
            DropReason::NoPort => "filter_no_port",
        }
    }
}

/// The answer to a rejected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    TcpReset,
    /// Destination Unreachable (RFC 792) with this code, and with this MTU if the code is Fragmentation Needed.
    Icmp {
        code: u8,
        mtu: u16,
    },
    /// Destination Unreachable (RFC 4443) with this code.
    Icmp6 {
        code: u8,
    },
}

/// A new address and port for one end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    pub side: Side,
    pub address: Address,
    /// The new port, or the new identifier of an ICMP query. Of protocols without ports it is zero and means nothing.
    pub port: u16,
    /// The packet is an ICMP error: `side` of the outer header gets the address, and the opposite side of the packet that it
    /// quotes gets the address and the port.
    pub quoted: bool,
}

/// A verdict, and what led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The index in the rule set of the rule that decided, also by way of a state; `None`: the default, or no rule.
    pub rule: Option<u32>,
    pub by: DecidedBy,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// A rule, or the default.
    Rule,
    /// A rule, and it made a state.
    NewState,
    /// The state that the packet belongs to.
    State,
    /// The state of the packet that an ICMP error quotes.
    QuotedState,
    /// The interface is not filtered (`set skip`).
    Skipped,
}
