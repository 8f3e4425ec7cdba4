//! Follows the kernel's settings that say which fields of a packet choose among several next hops.

use std::fs;
use std::time::Duration;

use fullview_plane::flow_hash::FlowFields;
use fullview_table::Family;

use super::control_plane::ControlPlane;
use crate::events::EventKind;

/// The kernel does not report changes of these settings.
const INTERVAL: Duration = Duration::from_secs(1);

const FAMILIES: [(Family, &str); 2] = [(Family::Inet, "ipv4"), (Family::Inet6, "ipv6")];

/// The settings as they were when they were last looked at.
#[derive(Default)]
pub struct MultipathHashWatch {
    /// Those of [`FAMILIES`].
    known: [Option<HashPolicy>; FAMILIES.len()],
    /// When it looks next.
    at: Duration,
}

impl MultipathHashWatch {
    /// Hands settings that have changed to the mirror, if it is time to look.
    pub fn look(&mut self, plane: &mut ControlPlane) {
        let now = plane.now();
        if now < self.at {
            return;
        }
        self.at = now + INTERVAL;
        for ((family, name), known) in FAMILIES.into_iter().zip(&mut self.known) {
            let policy = HashPolicy::read(name);
            let before = known.replace(policy);
            if before == Some(policy) {
                continue;
            }
            plane.mirror.set_flow_fields(family, policy.fields());
            if let Some((kind, line)) = policy.line(name, before.is_some()) {
                plane.log.line(now, kind, &line);
            }
        }
    }
}

/// A value of `fib_multipath_hash_policy`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct HashPolicy(u32);

impl HashPolicy {
    /// The setting of a family in this network namespace. A kernel without it has no routes with several next hops.
    fn read(family: &str) -> HashPolicy {
        let text = fs::read_to_string(format!("/proc/sys/net/{family}/fib_multipath_hash_policy"));
        HashPolicy(text.map_or(0, |text| text.trim().parse().unwrap_or(u32::MAX)))
    }

    /// `None` if only the kernel can choose so: by inner headers, or by fields that another setting names.
    fn fields(self) -> Option<FlowFields> {
        match self.0 {
            0 => Some(FlowFields::Layer3),
            1 => Some(FlowFields::Layer4),
            _ => None,
        }
    }

    /// What the log says of it; of what is followed only if it `has_changed`.
    fn line(self, family: &str, has_changed: bool) -> Option<(EventKind, String)> {
        let setting = format!("net.{family}.fib_multipath_hash_policy");
        let value = self.0;
        match self.fields() {
            None => Some((
                EventKind::Warning,
                format!(
                    "packets of {family} by routes with several next hops are left to the kernel: {setting} is {value}, and \
                     this router chooses by 0 (addresses) or 1 (addresses, protocol, ports); `sysctl -w {setting}=1` has it forward them"
                ),
            )),
            Some(_) if has_changed => {
                Some((EventKind::Router, format!("{setting} is {value} now: flows may take other next hops")))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_followed_are_named_with_those_that_are() {
        let line = |value, has_changed| HashPolicy(value).line("ipv6", has_changed);
        for value in [2, 3, 9] {
            let (kind, text) = line(value, false).unwrap();
            assert_eq!((kind, HashPolicy(value).fields()), (EventKind::Warning, None));
            assert!(text.contains(&format!("net.ipv6.fib_multipath_hash_policy is {value}")), "{text}");
        }
        for (value, fields) in [(0, FlowFields::Layer3), (1, FlowFields::Layer4)] {
            assert_eq!((line(value, false), HashPolicy(value).fields()), (None, Some(fields)));
            assert!(line(value, true).is_some_and(|(kind, _)| kind == EventKind::Router));
        }
    }
}
