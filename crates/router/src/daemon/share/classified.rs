//! With programs in the kernel: it keeps what is its own, and gets back what we cannot forward.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::mirror::Mirror;
use crate::route::LinkIndex;
use anyhow::Context;
use fullview_plane::burst::Slot;
use fullview_plane::port::classify::{Classifier, IngressKey, IngressSettings, RedirectScope, XdpAttachMode};
use fullview_plane::port::link::Link;
use fullview_plane::port::packet::PacketOptions;
use fullview_plane::port::reinject::{self, ReinjectThread};
use fullview_plane::verdict::Verdict;
use fullview_plane::view::View;

pub struct Share {
    classifier: Classifier,
    _injector: ReinjectThread,
    givers: Vec<reinject::Reinjector>,
    /// The view that the classifier goes by.
    view: Option<Arc<View>>,
    taken: Vec<Link>,
}

impl Share {
    pub fn new(workers: usize) -> anyhow::Result<Share> {
        let classifier = Classifier::load().context("frames cannot be told apart in the kernel")?;
        let (injector, givers) = ReinjectThread::start(classifier.trailer(), workers)?;
        Ok(Share { classifier, _injector: injector, givers, view: None, taken: Vec::new() })
    }

    /// Tells the kernel who we are now.
    pub fn follow(&mut self, mirror: &Mirror) -> anyhow::Result<()> {
        let view = mirror.views().current();
        if self.view.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view)) {
            return Ok(());
        }
        self.classifier.set_local_addresses(&mirror.local_addresses())?;
        self.classifier.set_ingress(&stations(mirror, &view))?;
        self.view = Some(view);
        Ok(())
    }

    pub fn options(&mut self) -> anyhow::Result<PacketOptions<'_>> {
        Ok(PacketOptions { filter: Some(self.classifier.filter()?), ..PacketOptions::default() })
    }

    /// Prepares an interface for what [`Self::follow`] will say.
    pub fn take(&mut self, interface: &str) -> anyhow::Result<()> {
        let link = Link::named(interface)?;
        self.classifier.take_from_kernel(&link)?;
        self.has_taken(&link);
        Ok(())
    }

    fn has_taken(&mut self, link: &Link) {
        if self.taken.iter().all(|taken| taken.index() != link.index()) {
            self.taken.push(link.clone());
        }
    }

    /// The same, for frames that go to AF_XDP sockets, one for each queue; says where they are told apart.
    pub fn redirect(&mut self, link: &Link, sockets: &[BorrowedFd<'_>]) -> anyhow::Result<&'static str> {
        let place = self.classifier.redirect(link, RedirectScope::Forwardable, sockets);
        let place = place.inspect_err(|_| self.classifier.release(link))?;
        self.has_taken(link);
        Ok(match place {
            XdpAttachMode::Driver => "redirected by the driver",
            XdpAttachMode::Generic => "redirected behind the driver, which has no XDP of its own",
        })
    }

    /// The kernel forwards everything, from now until [`Self::follow`] says otherwise.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.view = None;
        Ok(self.classifier.set_ingress(&HashMap::new())?)
    }

    /// Leaves all other interfaces as they were.
    pub fn keep(&mut self, links: &[LinkIndex]) {
        for link in self.taken.extract_if(.., |link| !links.contains(&link.index())) {
            self.classifier.release(&link);
        }
    }

    /// One for each worker.
    pub fn giver(&mut self) -> Giver {
        Giver(self.givers.pop())
    }

    pub fn take_back(&mut self, giver: Giver) {
        self.givers.extend(giver.0);
    }
}

/// Interfaces that are up, by where their frames come in.
fn stations(mirror: &Mirror, view: &View) -> HashMap<IngressKey, IngressSettings> {
    let station = |interface: &fullview_plane::interface::Interface| {
        let link = mirror.port_link(interface.port.into()).filter(|_| interface.up)?;
        let place = IngressKey { interface: link.index, vlan: interface.vlan };
        let (forwards_inet, forwards_inet6) = (interface.forwards_inet, interface.forwards_inet6);
        Some((place, IngressSettings { mac: interface.mac, forwards_inet, forwards_inet6 }))
    };
    view.parts().interfaces.iter().filter_map(station).collect()
}

/// What a worker gives frames back to the kernel by.
pub struct Giver(Option<reinject::Reinjector>);

impl Giver {
    /// Gives back what the kernel may do something about; `link` is where it came in. What does not fit is lost, and
    /// the ring counts it.
    pub fn give(&mut self, link: u32, packet: &Slot) {
        let answered = match packet.verdict {
            Verdict::Punt(_) => true,
            Verdict::Drop(reason) => reason.is_answered(),
            Verdict::Forward => false,
        };
        if let Some(giver) = self.0.as_mut().filter(|_| answered) {
            giver.queue(link, packet.frame());
        }
    }

    pub fn flush(&mut self) {
        self.0.iter_mut().for_each(reinject::Reinjector::flush);
    }
}
