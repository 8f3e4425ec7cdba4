//! The ports of a router without a kernel: TAP interfaces of its own, or cards whose frames the kernel does not see.

use std::os::fd::BorrowedFd;

use fullview_plane::port::link::Link;
use fullview_plane::port::promiscuous::PromiscuousMode;
use fullview_plane::port::tap::TapPort;
use fullview_plane::wire::ethernet::Mac;

use crate::daemon::error::DaemonError;
use crate::daemon::plan_events::PortState;
use crate::daemon::ports::{AnyPort, PacketMemory, open_xdp};
use crate::options::plan::{Plan, PlannedInterface};
use crate::options::{PortName, RouterOptions};

/// The state of each port before it is opened. Its MAC is the configured one, the card's, or a random one. A TAP interface
/// is down until its other end is set up.
pub fn states(options: &RouterOptions, given: &[Option<Mac>]) -> Result<Vec<PortState>, DaemonError> {
    let state = |((name, kind), given): ((&String, &PortName), &Option<Mac>)| {
        if *kind == PortName::Tap {
            return Ok(PortState { mac: given.unwrap_or_else(super::macs::random), up: false });
        }
        let link = Link::named(name)?;
        Ok(PortState { mac: given.map_or_else(|| link.mac(), Ok)?, up: link.is_running()? })
    };
    options.interfaces.iter().zip(&options.ports.kinds).zip(given).map(state).collect()
}

/// Open ports, and what they need.
pub struct OpenPorts {
    /// By worker and port.
    pub ports: Vec<Vec<Option<AnyPort>>>,
    pub memory: PacketMemory,
    pub cards: Cards,
}

/// What keeps the frames of cards coming to the ports.
#[derive(Default)]
pub struct Cards {
    redirect: Redirect,
    /// A card passes on no frames to groups, addresses and VLANs that its kernel does not know.
    promiscuous: Vec<PromiscuousMode>,
}

impl OpenPorts {
    /// Opens every port of the plan, with an end for each worker.
    pub fn open(options: &RouterOptions, plan: &Plan) -> Result<OpenPorts, DaemonError> {
        let (mut memory, mut cards) = (PacketMemory::new(), Cards::default());
        memory.ensure(options.workers * options.interfaces.len(), &options.ports);
        let mut ports: Vec<Vec<Option<AnyPort>>> = (0..options.workers).map(|_| Vec::new()).collect();
        for interface in plan.interfaces.iter().filter(|interface| interface.vlan.is_none()) {
            let group = open_one(options, interface, &memory, &mut cards)?;
            ports.iter_mut().zip(group).for_each(|(ports, port)| ports.push(Some(port)));
        }
        Ok(OpenPorts { ports, memory, cards })
    }
}

fn open_one(
    options: &RouterOptions,
    interface: &PlannedInterface,
    memory: &PacketMemory,
    cards: &mut Cards,
) -> Result<Vec<AnyPort>, DaemonError> {
    if options.ports.kinds[usize::from(interface.port)] == PortName::Tap {
        return open_taps(options, interface);
    }
    let redirect = |link: &Link, sockets: &[BorrowedFd<'_>]| {
        let place = cards.redirect.all(link, sockets)?;
        cards.promiscuous.push(PromiscuousMode::of(link)?);
        Ok(place)
    };
    let port = (interface.port, &*interface.name);
    open_xdp(port, options.workers, options.ports.xdp, memory, redirect)
}

fn open_taps(options: &RouterOptions, interface: &PlannedInterface) -> Result<Vec<AnyPort>, DaemonError> {
    let group = TapPort::create_group(interface.port, &interface.name, options.workers)?;
    group.first().map_or(Ok(()), |port| port.set_mtu(interface.mtu))?;
    Ok(group.into_iter().map(AnyPort::Tap).collect())
}

use redirect::Redirect;

#[cfg(feature = "bpf")]
mod redirect {
    use std::os::fd::BorrowedFd;

    use fullview_plane::port::classify::{Classifier, RedirectScope, XdpAttachMode};
    use fullview_plane::port::link::Link;

    use crate::daemon::error::DaemonError;

    /// Takes frames from the kernel, as long as it exists.
    #[derive(Default)]
    pub struct Redirect(Option<Classifier>);

    impl Redirect {
        /// Redirects all frames of an interface to these sockets, one for each queue. Returns where the program runs, as
        /// text.
        pub fn all(&mut self, link: &Link, sockets: &[BorrowedFd<'_>]) -> Result<&'static str, DaemonError> {
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

    use crate::daemon::error::DaemonError;
    use crate::error::BadInput;

    /// Takes no frames from the kernel: without programs in the kernel it cannot.
    #[derive(Default)]
    pub struct Redirect {}

    impl Redirect {
        pub fn all(
            &mut self,
            _link: &Link,
            _sockets: &[BorrowedFd<'_>],
        ) -> Result<&'static str, DaemonError> {
            Err(BadInput(
                "a program in the kernel redirects frames to AF_XDP sockets: build with --features bpf"
                    .into(),
            )
            .into())
        }
    }
}
