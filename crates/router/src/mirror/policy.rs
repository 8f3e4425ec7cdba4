//! What somebody wants of interfaces that the kernel does not know about.

use std::collections::BTreeMap;

use super::Mirror;
use fullview_plane::interface::{Interface, SourceCheck};

/// What is wanted of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfacePolicy {
    /// How sources of its packets are checked.
    pub source_check: SourceCheck,
    /// Whether senders are told of a better first hop.
    pub redirects: bool,
}

impl Mirror {
    /// Wants this of interfaces by their names, and nothing of others; in force from the next [`Mirror::commit`].
    pub fn set_policies(&mut self, policies: BTreeMap<String, InterfacePolicy>) {
        self.policies = policies;
        self.view_changed = true;
    }

    pub(super) fn with_policy(&self, interface: Interface) -> Interface {
        match self.policies.get(&interface.name) {
            Some(policy) => {
                Interface { source_check: policy.source_check, redirects: policy.redirects, ..interface }
            }
            None => interface,
        }
    }
}
