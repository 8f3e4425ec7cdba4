use super::state_options::{FlowName, StateOptions};
use super::test::Clause;
use super::translation::Translation;

/// A rule in its compiled form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledRule {
    pub clauses: Vec<Clause>,
    pub action: RuleAction,
    /// Ends the evaluation when it matches (pf). ipfw ignores it.
    pub quick: bool,
    /// pf: the tag that matching packets get instead of an earlier one, up to [`Self::HIGHEST_TAG`]; zero leaves the tag.
    /// ipfw: the bits that are set in it.
    pub tag: u16,
    /// Packets with IP options pass by the states that it makes (pf's `allow-opts`).
    pub allows_options: bool,
    /// Matching packets create a state, if the rule decides.
    pub state: Option<StateOptions>,
    /// What identifies the rule in counters, answers and across reloads: ipfw's number, or pf's position.
    pub number: u32,
    /// The rule in its language, with the name of the part in parentheses if it is one part of ipfw's `nat`.
    pub text: String,
    /// How many bytes of the text are ipfw's number and the blank behind it.
    pub number_length: usize,
    /// The names that pf's `label` gives it.
    pub labels: Vec<String>,
}

impl CompiledRule {
    /// States of pf have 15 bits for the tag of their packets.
    pub const HIGHEST_TAG: u16 = 0x7fff;

    /// A rule for all packets.
    pub fn new(action: RuleAction) -> Self {
        CompiledRule {
            clauses: Vec::new(),
            action,
            quick: false,
            tag: 0,
            allows_options: false,
            state: None,
            number: 0,
            text: String::new(),
            number_length: 0,
            labels: Vec::new(),
        }
    }

    /// Whether it has a number of its own, as all rules of ipfw do.
    pub(crate) fn has_own_number(&self) -> bool {
        self.number_length > 0
    }

    /// The text without the number. Equal ones stand for the same rule after a reload, because ipfw's numbers move when a rule
    /// is added before others that have none of their own.
    pub(crate) fn identity(&self) -> &str {
        self.text.get(self.number_length..).unwrap_or(&self.text)
    }
}

/// What a rule does with a packet that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleAction {
    Pass,
    /// Drops without an answer.
    Block,
    /// Drops and answers.
    Reject(RejectWith),
    /// Counts, and sets the tag, without deciding (pf's `match`, ipfw's `count`).
    Count,
    /// Goes on at the rule with this index in the list, which is a later one (ipfw).
    SkipTo(u32),
    /// Looks for the packet's state here (ipfw).
    CheckState(FlowName),
    /// Ends the evaluation if this rule or a later one has already matched (pf's `anchor … quick`).
    StopIfDecided {
        since: u32,
    },
    /// Translates: pf's rules of translation, ipfw's `nat`.
    Translate(Box<Translation>),
    /// Translates nothing by the rules of its kind (pf's `no nat` and `no rdr`). Those of the next kind begin at this index, if there
    /// is one.
    NoTranslate {
        next: Option<u32>,
    },
}

/// How a rejected packet is answered. A kind that is absent is not answered; ICMP errors are never answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectWith {
    /// TCP over IPv4 is answered with a reset.
    pub reset: bool,
    /// TCP over IPv6 is.
    pub reset6: bool,
    /// The code of the ICMP message Destination Unreachable for other packets.
    pub icmp: Option<u8>,
    /// The code of the ICMPv6 message Destination Unreachable for other packets.
    pub icmp6: Option<u8>,
    /// The MTU that the ICMP message states, with the code Fragmentation Needed.
    pub mtu: u16,
}
