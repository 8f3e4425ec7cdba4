//! The filter of a router beside a kernel: rules that follow the kernel's interfaces, and the fence that keeps the kernel from
//! forwarding past them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_plane::kernel_flows::PathChanges;
use fullview_plane::view::View;

use super::control_plane::ControlPlane;
use super::error::{DaemonError, system};
use super::filter_start::start_filter;
use super::running_filter::{RunningFilter, WorkerFilter};
use super::wakeup::Wakeup;
use crate::bypass;
use crate::error::BadInput;
use crate::events::EventKind;
use crate::fence::{self, Fence, FencedPort};
use crate::filter::{FilterError, FilterOptions};

/// What rules may refer to, by the number of the interface.
type NamedAddresses = Vec<(String, Vec<InterfaceAddress>)>;

/// The interfaces that the rules in force were made for, and those that they do not follow.
struct FollowedInterfaces {
    facts: NamedAddresses,
    /// Interfaces that rules could not be made for, and how often the rules had changed before.
    failed: Option<(NamedAddresses, u64)>,
}

impl FollowedInterfaces {
    fn new(facts: NamedAddresses) -> FollowedInterfaces {
        FollowedInterfaces { facts, failed: None }
    }

    /// Whether rules are to be made for these interfaces. Rules that cannot be made for them are tried again only when
    /// there are other rules.
    fn needs_rules_for(&mut self, facts: &NamedAddresses, changes: u64) -> bool {
        if *facts == self.facts {
            self.failed = None;
            return false;
        }
        self.failed.as_ref().is_none_or(|failed| (&failed.0, failed.1) != (facts, changes))
    }

    /// Whether there are other rules than those that could not be made for the interfaces.
    fn has_other_rules(&self, changes: u64) -> bool {
        self.failed.as_ref().is_some_and(|(_, before)| *before != changes)
    }
}

pub struct KernelFilter {
    fence: Fence,
    /// The view that the rules were last compared with.
    view: Arc<View>,
    followed: FollowedInterfaces,
    paths: PathChanges,
    /// Rules for these interfaces wait for the worker, which forwards by them afterwards.
    opening: bool,
}

/// A filter that the kernel could still forward past.
pub struct UnfencedFilter {
    pub workers: Vec<WorkerFilter>,
    view: Arc<View>,
}

/// Refuses an interface whose frames the kernel forwards without a look at their IP headers, past the fence.
pub fn check_interface(interface: &str) -> Result<(), BadInput> {
    let mpls = fs::read_to_string(format!("/proc/sys/net/mpls/conf/{interface}/input")).unwrap_or_default();
    if mpls.trim() == "1" {
        return Err(BadInput(format!(
            "interface {interface}: the kernel forwards MPLS by it, past the rules of the filter; \
             `sysctl -w net.mpls.conf.{interface}.input=0` prevents that"
        )));
    }
    if Path::new(&format!("/sys/class/net/{interface}/brport")).exists() {
        return Err(BadInput(format!(
            "interface {interface}: it is a port of a bridge, which forwards frames past the rules of the filter; take it out of \
             the bridge: `ip link set {interface} nomaster`"
        )));
    }
    Ok(())
}

/// Refuses to replace the fence of a router for other interfaces, between which the kernel would forward then.
pub fn check_fence(interfaces: &[String]) -> Result<(), BadInput> {
    let listed = bypass::fenced_ports().map_err(|error| {
        BadInput(format!("the kernel does not list its chains of nftables ({error}); as root it does"))
    })?;
    let others: Vec<String> = listed.into_iter().filter(|port| !interfaces.contains(port)).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(BadInput(format!(
        "a router with a filter for {} runs in this network namespace, or was killed, and there can be one: end it, or start it \
         again and end it; if the kernel may forward there without rules, `nft delete table inet {}`",
        others.join(", "),
        fence::TABLE
    )))
}

impl UnfencedFilter {
    /// Makes the rules for the interfaces as they are. Wrong rules change nothing in the kernel.
    pub fn new(options: &FilterOptions, plane: &mut ControlPlane) -> Result<UnfencedFilter, DaemonError> {
        let wakeups = (0..options.workers).map(|_| Wakeup::new()).collect::<Result<_, _>>();
        let wakeups = wakeups.map_err(system("making an eventfd"))?;
        let view = plane.mirror.views().current();
        let workers = start_filter(options, &view.parts().interfaces, plane, wakeups)?;
        Ok(UnfencedFilter { workers, view })
    }

    /// Makes the fence. Returns the workers' parts too.
    pub fn fence(self, plane: &mut ControlPlane) -> Result<(KernelFilter, Vec<WorkerFilter>), DaemonError> {
        let UnfencedFilter { workers, view } = self;
        let interfaces = &view.parts().interfaces;
        let facts = facts(interfaces);
        let fence = Fence::raise(fenced_ports(interfaces))?;
        let text = format!(
            "the kernel forwards nothing between {} and other interfaces (nftables, table inet {}); packets that pass the rules \
             are forwarded by this program",
            names(&facts).join(", "),
            fence::TABLE
        );
        plane.log.line(plane.now(), EventKind::Router, &text);
        plane.mirror.set_judged_interfaces(names(&facts));
        plane.commit();
        let view = plane.mirror.views().current();
        let followed = FollowedInterfaces::new(facts);
        Ok((KernelFilter { fence, view, followed, paths: PathChanges::default(), opening: false }, workers))
    }
}

impl KernelFilter {
    /// Makes fence and rules again if interfaces or their addresses are others, or the rules are that did not follow them. New
    /// interfaces forward when the worker has taken the rules about them.
    pub fn follow(&mut self, plane: &mut ControlPlane) -> Result<(), DaemonError> {
        plane.filter.iter_mut().for_each(RunningFilter::free_former);
        if self.paths.follow(&plane.mirror.views().current()) {
            plane.filter.iter().for_each(RunningFilter::wake_workers);
        }
        if self.opening && plane.filter.as_ref().is_some_and(RunningFilter::is_settled) {
            self.opening = false;
            plane.mirror.set_judged_interfaces(names(&self.followed.facts));
            plane.commit();
        }
        let view = plane.mirror.views().current();
        let is_due = !Arc::ptr_eq(&view, &self.view) || self.followed.has_other_rules(changes(plane));
        if is_due && self.follow_interfaces(&view.parts().interfaces, plane)? {
            self.view = view;
        }
        Ok(())
    }

    /// `false` if another thread changes the rules just now, or the worker has not taken earlier changes: a later call tries
    /// again.
    fn follow_interfaces(
        &mut self,
        interfaces: &[Interface],
        plane: &mut ControlPlane,
    ) -> Result<bool, DaemonError> {
        let (facts, changes) = (facts(interfaces), changes(plane));
        self.fence.follow(fenced_ports(interfaces))?;
        if !self.followed.needs_rules_for(&facts, changes) {
            return Ok(true);
        }
        let Some(filter) = &mut plane.filter else { return Ok(true) };
        let Some(changed) = filter.follow_interfaces(interfaces) else { return Ok(false) };
        match changed {
            Ok(()) => (self.followed, self.opening) = (FollowedInterfaces::new(facts), true),
            Err(FilterError::Busy(_)) => return Ok(false),
            Err(error) => {
                let text = format!(
                    "filter: the rules do not follow the interfaces, new ones do not forward: {error}"
                );
                plane.log.line(plane.now(), EventKind::Warning, &text);
                self.followed.failed = Some((facts, changes));
            }
        }
        Ok(true)
    }

    /// Lets the kernel forward again.
    pub fn end(self) -> Result<(), DaemonError> {
        Ok(self.fence.remove()?)
    }
}

/// How often the rules of the filter have changed.
fn changes(plane: &ControlPlane) -> u64 {
    plane.filter.as_ref().map_or(0, RunningFilter::changes)
}

fn facts(interfaces: &[Interface]) -> NamedAddresses {
    interfaces.iter().map(|interface| (interface.name.clone(), interface.addresses.clone())).collect()
}

/// The ports among the interfaces, each with its VLANs.
fn fenced_ports(interfaces: &[Interface]) -> Vec<FencedPort> {
    let (vlans, ports): (Vec<_>, Vec<_>) = interfaces.iter().partition(|one| one.vlan.is_some());
    let of_port =
        |port: u16| vlans.iter().filter(move |vlan| vlan.port == port).map(|vlan| vlan.name.clone());
    ports.into_iter().map(|port| FencedPort::new(&port.name, of_port(port.port))).collect()
}

fn names(facts: &NamedAddresses) -> Vec<String> {
    facts.iter().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_do_not_follow_the_interfaces_are_tried_again_only_when_something_is_other() {
        let with = |address: Option<&str>| {
            let own = |ip: &str| InterfaceAddress { ip: ip.parse().unwrap(), len: 24 };
            vec![("eth1".to_owned(), address.map(own).into_iter().collect())]
        };
        let (first, none, second) = (with(Some("10.0.1.1")), with(None), with(Some("10.0.9.1")));
        let mut followed = FollowedInterfaces::new(first.clone());
        assert!(!followed.needs_rules_for(&first, 0));
        assert!(followed.needs_rules_for(&none, 0));
        followed.failed = Some((none.clone(), 0));
        assert!(!followed.needs_rules_for(&none, 0) && !followed.has_other_rules(0));
        assert!(followed.needs_rules_for(&second, 0), "another address");
        assert!(followed.needs_rules_for(&none, 1) && followed.has_other_rules(1), "other rules");
        assert!(!followed.needs_rules_for(&first, 0));
        assert!(followed.needs_rules_for(&none, 0), "the address was there again meanwhile");
    }
}
