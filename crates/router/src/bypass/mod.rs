//! What this host does to the packets that its kernel forwards, and would not do to those that this router forwards: they
//! never reach the packet filter, the policies of IPsec, or traffic control.

mod dump;
mod nftables;
mod traffic_control;
mod vlans;
mod xfrm;

use std::fs;
use std::io;

use crate::error::BadInput;

/// Rules that packets forwarded by this router do not meet, as text for the operator.
pub type Bypassed = Vec<String>;

/// What the router takes over.
#[derive(Clone, Debug)]
pub struct TakenOver {
    pub interfaces: Vec<String>,
    /// Whether the router has a filter, and so the fence around these interfaces is or becomes its own.
    pub is_filtered: bool,
    /// Whether packets leave without the queueing discipline of their interface.
    pub leaves_unqueued: bool,
}

impl TakenOver {
    /// Everything that packets between these interfaces would meet in the kernel only.
    ///
    /// # Errors
    ///
    /// The kernel does not list its rules, for example for lack of CAP_NET_ADMIN.
    pub fn bypassed(&self) -> io::Result<Bypassed> {
        let vlans = vlans::of(&self.interfaces)?;
        let all = [&self.interfaces[..], &vlans].concat();
        let mut found = nftables::chains(&all, self.is_filtered)?;
        found.extend(["ip", "ip6"].into_iter().flat_map(legacy_tables));
        found.extend(xfrm::policies()?.map(str::to_owned));
        if self.leaves_unqueued {
            found.extend(traffic_control::shapers(&self.interfaces)?);
        }
        found.extend(traffic_control::shapers(&vlans)?);
        found.extend(traffic_control::filters(&all)?);
        Ok(found)
    }

    /// Refuses to forward past rules.
    pub fn check(&self) -> Result<(), BadInput> {
        match self.bypassed() {
            Ok(found) if found.is_empty() => Ok(()),
            Ok(found) => Err(refused(&found)),
            Err(error) => Err(BadInput(format!(
                "the kernel does not say whether it filters what it forwards ({error}); as root it does, or \
                 `--bypass-filters` starts without knowing"
            ))),
        }
    }
}

/// The ports that a fence is around, whichever router made it.
///
/// # Errors
///
/// The kernel does not list its chains.
pub fn fenced_ports() -> io::Result<Vec<String>> {
    nftables::fenced_ports()
}

/// The names of the VLANs of these ports.
///
/// # Errors
///
/// The kernel does not list its interfaces.
pub fn vlans(ports: &[String]) -> io::Result<Vec<String>> {
    vlans::of(ports)
}

/// The disciplines that shape what leaves by these interfaces, as text for the operator.
///
/// # Errors
///
/// The kernel does not list them.
pub fn shapers(interfaces: &[String]) -> io::Result<Bypassed> {
    traffic_control::shapers(interfaces)
}

fn refused(found: &[String]) -> BadInput {
    BadInput(format!(
        "packets that this router forwards would not meet these rules of the kernel:\n  {}\nDelete them, or, if forwarded \
         packets need not meet them, start with `--bypass-filters` (`bypass-filters = true` in a file)",
        found.join("\n  ")
    ))
}

/// The tables of the old iptables. The kernel lists their names only, so that a table may be empty.
fn legacy_tables(family: &'static str) -> Vec<String> {
    let tables = fs::read_to_string(format!("/proc/net/{family}_tables_names")).unwrap_or_default();
    tables.lines().map(|table| format!("{family}tables-legacy, table {table}")).collect()
}
