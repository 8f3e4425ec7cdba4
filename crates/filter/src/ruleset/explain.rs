//! Why rules match a packet or do not, for people.

use super::matching::{Surroundings, mismatch};
use super::parts::RuleSet;
use crate::packet::Packet;
use crate::rule::{Clause, Test};

impl RuleSet {
    /// For each filter rule, in order: what about the packet it does not match; `None` if it matches. Which of those that
    /// match decides is the answer of [`Self::check`].
    pub fn mismatches(&self, packet: &Packet) -> Vec<Option<&'static str>> {
        // A rule with a probability is as likely to match as not; this draw makes it match.
        let around = Surroundings { tables: &self.tables, draw: 0 };
        let of = |(index, rule)| mismatch(rule, index, packet, around).map(subject);
        self.rules().iter().enumerate().map(of).collect()
    }
}

/// What a clause asks about. All its tests ask about one thing, or about two that one word of a language joins.
fn subject(clause: &Clause) -> &'static str {
    clause.0.first().map_or("nothing, which no packet is", |literal| word(&literal.test))
}

fn word(test: &Test) -> &'static str {
    match test {
        Test::Direction(_) => "the direction",
        Test::Interface(_) => "the interface",
        Test::ReceivedOn(_) => "the interface that it came by",
        Test::Family(_) => "the address family",
        Test::Protocol(_) => "the protocol",
        Test::Source(_) => "the source address",
        Test::Destination(_) => "the destination address",
        Test::SourcePort(_) => "the source port",
        Test::DestinationPort(_) => "the destination port",
        Test::TcpFlags { .. } | Test::TcpAnyFlag(_) => "the TCP flags",
        Test::TcpWindow(..) => "the TCP window",
        Test::TcpSeq(_) | Test::TcpAck(_) => "the TCP sequence numbers",
        Test::IcmpType(_) | Test::IcmpCode(_) => "the ICMP type or code",
        Test::Tos { .. } => "the type of service",
        Test::Ttl(..) => "the TTL",
        Test::Length(..) => "the length",
        Test::Fragment(_) => "which fragment it is",
        Test::Options => "the options",
        Test::Tagged(_) => "the tag",
        Test::Probability(_) => "the probability",
    }
}
