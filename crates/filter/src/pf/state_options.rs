//! How a rule keeps states.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateKeeping {
    /// `no state`, and every rule that does not pass.
    None,
    Keep(Box<PfStateOptions>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PfStateOptions {
    /// The most states of the rule.
    pub max: Option<u32>,
    pub no_sync: bool,
    pub source_track: Option<SourceTrack>,
    pub max_src_states: Option<u32>,
    pub max_src_conn: Option<u32>,
    pub max_src_conn_rate: Option<ConnectionRate>,
    pub max_src_nodes: Option<u32>,
    pub overload: Option<Overload>,
    pub binding: Option<StateBinding>,
    pub allow_related: bool,
    pub sloppy: bool,
    pub pflow: bool,
    pub timeouts: BTreeMap<StateTimeout, u32>,
}

/// Whether sources are counted for all rules or for the rule alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceTrack {
    Global,
    Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionRate {
    pub limit: u32,
    pub seconds: u32,
}

/// What happens to a source that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overload {
    pub table: String,
    pub flush: Flush,
}

/// Which states of the source end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    None,
    OfRule,
    Global,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateBinding {
    /// A state counts on the interface that made it.
    Interface,
    Floating,
}

macro_rules! timeouts {
    ($($variant:ident $name:literal,)*) => {
        /// What a timeout is about, in the order in which pfctl prints them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StateTimeout { $($variant,)* }

        impl StateTimeout {
            pub const ALL: &[(StateTimeout, &str)] = &[$((StateTimeout::$variant, $name),)*];

            pub fn name(self) -> &'static str {
                match self { $(StateTimeout::$variant => $name,)* }
            }
        }
    };
}

timeouts! {
    TcpFirst "tcp.first",
    TcpOpening "tcp.opening",
    TcpEstablished "tcp.established",
    TcpClosing "tcp.closing",
    TcpFinWait "tcp.finwait",
    TcpClosed "tcp.closed",
    UdpFirst "udp.first",
    UdpSingle "udp.single",
    UdpMultiple "udp.multiple",
    IcmpFirst "icmp.first",
    IcmpError "icmp.error",
    OtherFirst "other.first",
    OtherSingle "other.single",
    OtherMultiple "other.multiple",
    Fragment "frag",
    Interval "interval",
    AdaptiveStart "adaptive.start",
    AdaptiveEnd "adaptive.end",
    SourceTrack "src.track",
    TimestampDifference "tcp.tsdiff",
    SctpFirst "sctp.first",
    SctpOpening "sctp.opening",
    SctpEstablished "sctp.established",
    SctpClosing "sctp.closing",
    SctpClosed "sctp.closed",
}

impl StateTimeout {
    pub fn named(name: &str) -> Option<StateTimeout> {
        StateTimeout::ALL.iter().find(|(_, known)| *known == name).map(|(timeout, _)| *timeout)
    }

    /// Whether single rules can set it.
    pub fn is_of_states(self) -> bool {
        !matches!(self, StateTimeout::Fragment | StateTimeout::Interval)
    }
}
