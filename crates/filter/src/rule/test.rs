use super::lookup_key::LookupKey;
use super::ranges::{AddressMatch, ByteSet, InterfaceSet, PortRange, TableId};
use crate::address::Family;
use crate::packet::Direction;

/// Any of its literals matches. An empty clause matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clause(pub Vec<Literal>);

impl Clause {
    /// The clause of one test.
    pub fn of(test: Test) -> Self {
        Clause(vec![Literal { negated: false, test }])
    }

    /// The clause that one test must fail.
    pub fn not(test: Test) -> Self {
        Clause(vec![Literal { negated: true, test }])
    }

    /// The clause that one of several tests must pass.
    pub fn any(tests: impl IntoIterator<Item = Test>) -> Self {
        Clause(tests.into_iter().map(|test| Literal { negated: false, test }).collect())
    }
}

/// A test, or its opposite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub negated: bool,
    pub test: Test,
}

/// One question about a packet. A question about a header that the packet does not have is answered with no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    Direction(Direction),
    /// The interface of this pass.
    Interface(InterfaceSet),
    /// The interface that it arrived at.
    ReceivedOn(InterfaceSet),
    Family(Family),
    Protocol(ByteSet),
    Source(AddressMatch),
    Destination(AddressMatch),
    SourcePort(PortRange),
    DestinationPort(PortRange),
    /// The table contains what is looked up.
    Lookup(LookupKey, TableId),
    /// A TCP segment with exactly the flags `set` among those in `mask`.
    TcpFlags {
        set: u8,
        mask: u8,
    },
    /// A TCP segment with any of these flags.
    TcpAnyFlag(u8),
    /// A TCP window from the first to the second.
    TcpWindow(u16, u16),
    TcpSeq(u32),
    TcpAck(u32),
    IcmpType(ByteSet),
    IcmpCode(u8),
    /// The bits of `mask` in the type of service (IPv4) or traffic class (IPv6).
    Tos {
        value: u8,
        mask: u8,
    },
    /// A TTL or hop limit from the first to the second.
    Ttl(u8, u8),
    /// A length in bytes from the first to the second.
    Length(u16, u16),
    Fragment(FragmentTest),
    /// IPv4 options or IPv6 extension headers.
    Options,
    Tagged(u16),
    /// Any of these bits of the tag is set: ipfw's tags are bits, because a packet has several.
    TagBits(u16),
    /// Passes with a probability of this over 2³².
    Probability(u32),
}

/// A question about fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentTest {
    Any,
    /// All but the first.
    Later,
}
