//! Follows the kernel's settings that say which fields of a packet choose among several next hops.

use std::fs;
use std::io::{self, ErrorKind};
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
            if known.as_ref() == Some(&policy) {
                continue;
            }
            plane.mirror.set_flow_fields(family, policy.fields());
            if let Some((kind, line)) = policy.line(name, known.is_some()) {
                plane.log.line(now, kind, &line);
            }
            *known = Some(policy);
        }
    }
}

/// What `fib_multipath_hash_policy` says.
#[derive(Debug, PartialEq, Eq)]
enum HashPolicy {
    Value(u32),
    /// Why the value is not known.
    Unknown(String),
}

impl HashPolicy {
    /// The setting of a family in this network namespace.
    fn read(family: &str) -> HashPolicy {
        HashPolicy::of(fs::read_to_string(format!("/proc/sys/net/{family}/fib_multipath_hash_policy")))
    }

    /// A kernel without the setting has no routes with several next hops.
    fn of(content: io::Result<String>) -> HashPolicy {
        let value = match content {
            Ok(text) => text.trim().parse().map_err(|_| format!("{:?} is no number", text.trim())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.to_string()),
        };
        value.map_or_else(HashPolicy::Unknown, HashPolicy::Value)
    }

    /// `None` if only the kernel can choose so: by inner headers, or by fields that another setting names. A value that is not
    /// known may be one of these.
    fn fields(&self) -> Option<FlowFields> {
        match self {
            HashPolicy::Value(0) => Some(FlowFields::Layer3),
            HashPolicy::Value(1) => Some(FlowFields::Layer4),
            HashPolicy::Value(_) | HashPolicy::Unknown(_) => None,
        }
    }

    /// What the log says of it; of what is followed only if it `has_changed`.
    fn line(&self, family: &str, has_changed: bool) -> Option<(EventKind, String)> {
        let setting = format!("net.{family}.fib_multipath_hash_policy");
        let reason = match self {
            HashPolicy::Value(value) if self.fields().is_some() => {
                let text = format!("{setting} is {value} now: flows may take other next hops");
                return has_changed.then_some((EventKind::Router, text));
            }
            HashPolicy::Value(value) => format!(
                "{setting} is {value}, and this router chooses by 0 (addresses) or 1 (addresses, protocol, ports); \
                 `sysctl -w {setting}=1` has it forward them"
            ),
            HashPolicy::Unknown(error) => format!(
                "{setting} cannot be read ({error}); the router reads it every second, and forwards them when it can"
            ),
        };
        let what = format!("packets of {family} by routes with several next hops are left to the kernel");
        Some((EventKind::Warning, format!("{what}: {reason}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_followed_are_named_with_those_that_are() {
        let line = |value, has_changed| HashPolicy::Value(value).line("ipv6", has_changed);
        for value in [2, 3, 9] {
            let (kind, text) = line(value, false).unwrap();
            assert_eq!((kind, HashPolicy::Value(value).fields()), (EventKind::Warning, None));
            assert!(text.contains(&format!("net.ipv6.fib_multipath_hash_policy is {value}")), "{text}");
        }
        for (value, fields) in [(0, FlowFields::Layer3), (1, FlowFields::Layer4)] {
            assert_eq!((line(value, false), HashPolicy::Value(value).fields()), (None, Some(fields)));
            assert!(line(value, true).is_some_and(|(kind, _)| kind == EventKind::Router));
        }
    }

    #[test]
    fn a_setting_that_is_not_known_leaves_packets_to_the_kernel() {
        let of_error = |kind: ErrorKind| HashPolicy::of(Err(kind.into()));
        for (policy, reason) in [
            (of_error(ErrorKind::PermissionDenied), "permission denied"),
            (HashPolicy::of(Ok("l4\n".into())), "\"l4\" is no number"),
        ] {
            let (kind, text) = policy.line("ipv4", false).unwrap();
            assert_eq!((kind, policy.fields()), (EventKind::Warning, None));
            assert!(text.contains("are left to the kernel") && text.contains(reason), "{text}");
        }
        assert_eq!(of_error(ErrorKind::NotFound), HashPolicy::Value(0));
        assert_eq!(HashPolicy::of(Ok("1\n".into())), HashPolicy::Value(1));
    }
}
