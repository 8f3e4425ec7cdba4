use super::ranges::TableId;

/// The name under which ipfw keeps states; zero is `default`. pf uses zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowName(pub u16);

impl FlowName {
    /// Finds states of all names, but not those of translations.
    pub const ANY: FlowName = FlowName(u16::MAX);
    /// The names of translations begin here.
    pub const TRANSLATIONS: u16 = 0x8000;

    /// Whether a state of this name is to be found.
    #[inline(always)]
    pub(crate) fn finds(self, name: u16) -> bool {
        if self == FlowName::ANY { name < FlowName::TRANSLATIONS } else { self.0 == name }
    }
}

/// How the segments of a TCP connection are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// Sequence numbers must lie in the windows.
    #[default]
    Strict,
    /// Only flags count. The acknowledgements of one end show that the other one has answered.
    Sloppy,
    /// Only flags count, and each end by its own segments (ipfw and libalias).
    BothEnds,
}

/// How a rule keeps states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateOptions {
    pub flow: FlowName,
    pub tracking: Tracking,
    /// The state holds on the interface of its first packet only.
    pub if_bound: bool,
    /// The index of its [`Timeouts`](crate::state::Timeouts) in the rule set.
    pub timeouts: u16,
    /// The most states that this rule may have.
    pub max_states: Option<u32>,
    pub source: Option<SourceLimits>,
}

/// Limits for all states of one source, or, with ipfw, of all packets that are equal under a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLimits {
    pub mask: FlowMask,
    /// Only states of the same rule count.
    pub per_rule: bool,
    /// The most sources that this rule may have.
    pub max_nodes: Option<u32>,
    pub max_states: Option<u32>,
    /// The most TCP connections that have completed the handshake.
    pub max_connections: Option<u32>,
    /// The most new connections in so many seconds.
    pub rate: Option<(u32, u32)>,
    /// The table that gets a source beyond its limit of connections.
    pub overload: Option<TableId>,
}

impl SourceLimits {
    /// No limit yet, for the flows of one rule that are equal under a mask.
    pub const fn by(mask: FlowMask) -> Self {
        SourceLimits {
            mask,
            per_rule: true,
            max_nodes: None,
            max_states: None,
            max_connections: None,
            rate: None,
            overload: None,
        }
    }
}

/// Which parts of a flow distinguish the sources of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMask {
    pub source: bool,
    pub destination: bool,
    pub source_port: bool,
    pub destination_port: bool,
    pub protocol: bool,
}

impl FlowMask {
    /// Only the source address, with all protocols together, as in pf.
    pub const SOURCE: FlowMask = FlowMask {
        source: true,
        destination: false,
        source_port: false,
        destination_port: false,
        protocol: false,
    };
}
