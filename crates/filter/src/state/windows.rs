//! The windows of a connection, as far as something beside its states compares segments with them.

/// What the segments of an established connection are compared with and move: first the end that those of a flow come from, and
/// then the other one. Numbers of sequence only move forward, and windows only grow, so that two sets of windows are merged by
/// what is later and larger in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowWindows(pub [WindowEnd; 2]);

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
