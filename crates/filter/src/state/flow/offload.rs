//! What else may forward packets of known flows, before the worker sees them.

use std::fmt::Debug;

use crate::state::table::StateTable;
use crate::state::windows::FlowWindows;

use super::counted_rules::CountedRules;

/// Packets that were forwarded elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadedPackets {
    pub packets: u32,
    pub bytes: u64,
    /// The lower 32 bits of the time of the last one of the entry, in milliseconds, also if there is none since the last call.
    pub last: u32,
    /// Where they have moved the windows of their connection, if they are compared with these.
    pub windows: Option<FlowWindows>,
}

/// Forwards packets of known flows before they reach the worker, and counts them. Each packet is returned once, by
/// whichever function is called next, and no packet is forwarded by an entry after [`Self::end`].
pub trait FlowOffload: Debug + Send + Sync {
    /// Takes what was counted of an entry since the last call.
    fn take(&self, entry: u32) -> OffloadedPackets;

    /// Ends an entry. Takes what was counted until then.
    fn end(&self, entry: u32) -> OffloadedPackets;

    /// Moves the windows of an entry forward to where these are.
    fn raise(&self, entry: u32, windows: &FlowWindows);

    /// Lets no packet pass by any present entry. Each of them is ended afterwards.
    fn end_all(&self);
}

/// The entry of a flow that is not offloaded.
pub(super) const NOT_OFFLOADED: u32 = u32::MAX;

/// What counts the packets of known flows, and what may have forwarded some of them.
pub(super) struct FlowAccounts<'a> {
    pub states: &'a mut StateTable,
    pub rules: &'a mut CountedRules,
    pub offload: Option<&'a dyn FlowOffload>,
}

impl FlowAccounts<'_> {
    /// What was forwarded by an entry since the last call.
    pub fn take(&self, entry: u32) -> Option<OffloadedPackets> {
        self.offloaded(entry).map(|offload| offload.take(entry))
    }

    /// Ends an entry, and returns what was forwarded by it since the last call.
    pub fn end(&self, entry: u32) -> Option<OffloadedPackets> {
        self.offloaded(entry).map(|offload| offload.end(entry))
    }

    /// Moves the windows of an entry forward.
    pub fn raise(&self, entry: u32, windows: &FlowWindows) {
        self.offloaded(entry).into_iter().for_each(|offload| offload.raise(entry, windows));
    }

    fn offloaded(&self, entry: u32) -> Option<&dyn FlowOffload> {
        self.offload.filter(|_| entry != NOT_OFFLOADED)
    }
}
