//! The ports of a router without a kernel: interfaces of its own, or cards whose frames the kernel does not see.

use std::os::fd::BorrowedFd;

use fullview_plane::port::link::Link;
use fullview_plane::port::tap::TapPort;
use fullview_plane::wire::ethernet::Mac;

use super::plan::{Plan, Planned};
use super::told::State;
use crate::config::PortName;
use crate::daemon::Options;
use crate::daemon::ports::{AnyPort, Memory, open_xdp};

/// By port. The MAC is the one it was given, the card's, or any; a TAP is down until its other end is set up.
pub fn states(options: &Options, given: &[Option<Mac>]) -> anyhow::Result<Vec<State>> {
    let state = |((name, kind), given): ((&String, &PortName), &Option<Mac>)| {
        if *kind == PortName::Tap {
            return Ok(State { mac: given.unwrap_or_else(super::macs::any), up: false });
        }
        let link = Link::named(name)?;
        Ok(State { mac: given.map_or_else(|| link.mac(), Ok)?, up: link.is_running()? })
    };
    options.interfaces.iter().zip(&options.ports.kinds).zip(given).map(state).collect()
}

/// By worker and port.
pub fn open(
    options: &Options,
    plan: &Plan,
    memory: &Memory,
    redirect: &mut Redirect,
) -> anyhow::Result<Vec<Vec<Option<AnyPort>>>> {
    let mut all: Vec<Vec<Option<AnyPort>>> = (0..options.workers).map(|_| Vec::new()).collect();
    for interface in plan.interfaces.iter().filter(|interface| interface.vlan.is_none()) {
        let group = match options.ports.kinds[usize::from(interface.port)] {
            PortName::Tap => taps(options, interface)?,
            _ => {
                let redirect = |link: &Link, sockets: &[BorrowedFd<'_>]| redirect.all(link, sockets);
                let port = (interface.port, &*interface.name);
                open_xdp(port, options.workers, options.ports.xdp, memory, redirect)?
            }
        };
        all.iter_mut().zip(group).for_each(|(ports, port)| ports.push(Some(port)));
    }
    Ok(all)
}

fn taps(options: &Options, interface: &Planned) -> anyhow::Result<Vec<AnyPort>> {
    let group = TapPort::create_group(interface.port, &interface.name, options.workers)?;
    group.first().map_or(Ok(()), |port| port.set_mtu(interface.mtu))?;
    Ok(group.into_iter().map(AnyPort::Tap).collect())
}

pub use redirect::Redirect;

#[cfg(feature = "bpf")]
mod redirect {
    use std::os::fd::BorrowedFd;

    use fullview_plane::port::classify::{Classifier, RedirectScope, XdpAttachMode};
    use fullview_plane::port::link::Link;

    /// What takes frames from the kernel, as long as it is there.
    #[derive(Default)]
    pub struct Redirect(Option<Classifier>);

    impl Redirect {
        /// Has all frames of an interface moved to these sockets, one for each queue; says where.
        pub fn all(&mut self, link: &Link, sockets: &[BorrowedFd<'_>]) -> anyhow::Result<&'static str> {
            let classifier = match self.0.take() {
                Some(classifier) => classifier,
                None => Classifier::load()?,
            };
            let place = self.0.insert(classifier).redirect(link, RedirectScope::All, sockets)?;
            Ok(match place {
                XdpAttachMode::Driver => "all frames redirected by the driver",
                XdpAttachMode::Generic => {
                    "all frames redirected behind the driver, which has no XDP of its own"
                }
            })
        }
    }
}

#[cfg(not(feature = "bpf"))]
mod redirect {
    use std::os::fd::BorrowedFd;

    use fullview_plane::port::link::Link;

    /// Nothing takes frames from the kernel.
    #[derive(Default)]
    pub struct Redirect {}

    impl Redirect {
        pub fn all(&mut self, _link: &Link, _sockets: &[BorrowedFd<'_>]) -> anyhow::Result<&'static str> {
            anyhow::bail!(crate::error::BadInput(
                "a program in the kernel redirects frames to AF_XDP sockets: build with --features bpf"
                    .into()
            ))
        }
    }
}
