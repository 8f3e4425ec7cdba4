//! Which of the interfaces are there: workers have ports on those, and get others when an interface goes or comes.

use crate::mirror::Mirror;
use crate::netlink::event;
use crate::route::LinkIndex;
use fullview_plane::port::link::Link;
use fullview_plane::wire::ethernet::Mac;

use super::workers::Workers;
use crate::log;

/// The links that workers have ports on now, by port.
#[derive(Default)]
pub struct Ports {
    links: Vec<Option<(LinkIndex, String)>>,
}

impl Ports {
    /// Workers that know an interface under another number start again with the one of now.
    pub fn follow(&mut self, mirror: &Mirror, names: &[String], workers: &mut Workers) -> anyhow::Result<()> {
        let link = |port| {
            let link = mirror.port_link(port)?;
            let known = Some((link.index, link.name.clone()));
            // One that has a port already keeps it while it is down: others are not to be disturbed.
            let opens = link.up || !workers.options().needs_up(port) || self.links.get(port) == Some(&known);
            known.filter(|_| opens && is_ethernet(link))
        };
        let links: Vec<_> = (0..names.len()).map(link).collect();
        let is_idle = links.iter().all(Option::is_none);
        let go_on = workers.are_running() && !(workers.have_loss() && are_all_there(&links));
        if links == self.links && (is_idle || go_on) {
            return workers.follow(mirror);
        }
        if links != self.links {
            tell_missing(names, &links);
        }
        workers.restart(mirror, &links)?;
        self.links = links;
        Ok(())
    }
}

/// One that came later than the router may be of another kind, and is left alone.
fn is_ethernet(link: &event::Link) -> bool {
    link.mac != Mac::default()
}

fn tell_missing(names: &[String], links: &[Option<(LinkIndex, String)>]) {
    for (name, _) in names.iter().zip(links).filter(|(_, link)| link.is_none()) {
        log::line(&format!("interface {name} is not there; it will be used when it is"));
    }
}

/// Whether interfaces that ports have lost have come back as the same ones: netlink tells of nothing then.
fn are_all_there(links: &[Option<(LinkIndex, String)>]) -> bool {
    !links.iter().flatten().any(|(index, name)| is_gone(name, *index))
}

/// Whether the interface of that name is no longer the one of that number: netlink tells of it only afterwards.
pub fn is_gone(name: &str, index: LinkIndex) -> bool {
    Link::named(name).ok().is_none_or(|link| link.index() != index)
}
