//! Follows the interfaces of the router: when one appears, goes or changes its number, the workers get another port for it.

use std::time::Duration;

use fullview_plane::wire::ethernet::Mac;

use super::error::DaemonError;
use super::event_log::EventLog;
use super::retry::Retry;
use super::worker_ports::PortLink;
use super::workers::KernelWorkers;
use crate::error::message;
use crate::events::EventKind;
use crate::log;
use crate::mirror::Mirror;
use crate::netlink::event;

/// The links that workers have ports on now, by port.
#[derive(Default)]
pub struct FollowedPorts {
    links: Vec<Option<PortLink>>,
    /// Attempts to start workers on them that failed.
    retry: Retry,
}

impl FollowedPorts {
    /// Gives the workers other ports if the interfaces are others than those they have ports on, or if one that a port lost is back,
    /// and starts others if a worker ended. Otherwise only the kernel's classifier follows the mirror.
    pub fn follow(
        &mut self,
        mirror: &Mirror,
        names: &[String],
        workers: &mut KernelWorkers,
        (now, log): (Duration, &EventLog),
    ) -> Result<(), DaemonError> {
        let link = |port| {
            let link = mirror.port_link(port)?;
            let (index, birth, name) = (link.index, mirror.link_birth(link.index), link.name.clone());
            let known = Some(PortLink { index, birth, name });
            // A port on a link that went down stays, so that the traffic of other ports is not disturbed.
            let opens = link.up || !workers.options().needs_up(port) || self.links.get(port) == Some(&known);
            known.filter(|_| opens && is_ethernet(link))
        };
        let links: Vec<_> = (0..names.len()).map(link).collect();
        let is_idle = links.iter().all(Option::is_none);
        if links == self.links && (is_idle || workers.serve(&links)) {
            return workers.follow(mirror);
        }
        if links != self.links {
            self.log_missing(names, &links, mirror);
            self.retry.reset();
        } else if self.retry.waits(now) {
            return if workers.are_running() { workers.follow(mirror) } else { Ok(()) };
        }
        match workers.change(mirror, &links)? {
            None => self.retry.reset(),
            Some(why) => self.record_failure(&why, workers, (now, log)),
        }
        self.links = links;
        Ok(())
    }

    /// A driver may answer for ever that its interface is going, and one may have come that cannot be a port. Rules of a filter hold
    /// while no worker runs, so that the kernel forwards nothing then.
    fn record_failure(
        &mut self,
        why: &DaemonError,
        workers: &KernelWorkers,
        (now, log): (Duration, &EventLog),
    ) {
        if self.retry.fail(now) {
            let state = match (workers.are_running(), workers.are_filtering()) {
                (true, _) => "the workers use the other interfaces",
                (false, true) => "no worker runs, nothing is forwarded",
                (false, false) => "no worker runs, the kernel forwards",
            };
            log.line(now, EventKind::Warning, &format!("{state}: {}; trying again", message(why)));
        }
    }

    /// Names the interfaces that cannot be used, and could until now.
    fn log_missing(&self, names: &[String], links: &[Option<PortLink>], mirror: &Mirror) {
        let is_known = |port: usize| self.links.get(port).is_some_and(Option::is_none);
        let missing = names.iter().zip(links).enumerate();
        for (port, (name, _)) in missing.filter(|(port, (_, link))| link.is_none() && !is_known(*port)) {
            log::warning(&format!("interface {name} {}", reason(mirror.port_link(port))));
        }
    }
}

/// Why an interface cannot be used now.
fn reason(link: Option<&event::Link>) -> &'static str {
    match link {
        Some(link) if is_ethernet(link) && !link.up => "is down; its port is opened when it is up",
        _ => "is not there, or is part of a bridge or bond; it will be used when it is there on its own",
    }
}

/// An interface that appears after the router started may be of another kind. It gets no port.
fn is_ethernet(link: &event::Link) -> bool {
    link.mac != Mac::default()
}
