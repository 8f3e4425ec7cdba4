//! The windows of a connection, as far as something beside its states compares segments with them.

/// What the segments of an established connection are compared with and move: first the end that those of a flow come from, and
/// then the other one. Sequence numbers only move forward, and windows only grow, so that two sets of windows are merged by what
/// is later and larger in each.
///
/// With these alone a plain segment is never valid that the states hold to be invalid. After a FIN the states take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowWindows(pub [WindowEnd; 2]);

impl FlowWindows {
    /// Windows that stand for two states of one connection. Segments that are valid with the smaller one of two windows are valid
    /// with both, and have the same effect on both. `None` if the states have not seen the same segments.
    pub(super) fn of_both(self, other: &FlowWindows) -> Option<FlowWindows> {
        let FlowWindows([first, second]) = self;
        let narrow =
            |end: WindowEnd, other: WindowEnd| WindowEnd { window: end.window.min(other.window), ..end };
        let both = FlowWindows([narrow(first, other.0[0]), narrow(second, other.0[1])]);
        let is_same = |at: usize| narrow(other.0[at], self.0[at]) == both.0[at];
        (is_same(0) && is_same(1)).then_some(both)
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEnd {
    /// The sequence number after the last byte that it has sent.
    pub sent: u32,
    /// The end of the window that the other end has opened for it.
    pub limit: u32,
    /// The largest window that it has offered, before scaling.
    pub window: u16,
    /// The shift of its windows.
    pub shift: u8,
}

/// What has to be compared of the packets of a flow before they are forwarded elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing but what the flow is known by.
    Nothing,
    /// Each segment with these windows, which it moves.
    Windows(FlowWindows),
    /// What only the states know.
    States,
}
