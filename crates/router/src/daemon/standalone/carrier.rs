//! Whether ports carry frames. No kernel reports link changes to a router without one, so it looks.

use std::io;
use std::os::fd::OwnedFd;

use fullview_plane::port::PortError;
use fullview_plane::port::link::Link;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::daemon::error::{DaemonError, system};
use crate::daemon::ports::AnyPort;

/// Finds out whether a port carries frames.
enum CarrierProbe {
    /// A TAP interface of the router. Its other end, which may have moved to another namespace, is up or down.
    Tap(OwnedFd),
    /// A card.
    Card(Link),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Up,
    Down,
    Gone,
}

impl CarrierProbe {
    fn of(name: &str, port: &AnyPort) -> Result<CarrierProbe, DaemonError> {
        let failed = || system::<io::Error>("the state of links");
        Ok(match port {
            AnyPort::Tap(port) => CarrierProbe::Tap(port.as_fd().try_clone_to_owned().map_err(failed())?),
            _ => CarrierProbe::Card(Link::named(name)?),
        })
    }

    /// The carrier. `None` if the system does not say; then the last one is taken to last.
    fn carrier(&self) -> Option<Carrier> {
        match self {
            CarrierProbe::Tap(file) => tap_carrier(file),
            CarrierProbe::Card(link) => match link.is_running() {
                Ok(true) => Some(Carrier::Up),
                Ok(false) => Some(Carrier::Down),
                Err(PortError::Removed { .. }) => Some(Carrier::Gone),
                Err(_) => None,
            },
        }
    }
}

/// The kernel takes frames as long as its end is set up, and reports an error once that end is removed
/// (`tun_chr_poll` in its `drivers/net/tun.c`).
fn tap_carrier(file: &OwnedFd) -> Option<Carrier> {
    let mut fds = [PollFd::new(file, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()?;
    let found = fds[0].revents();
    Some(match found {
        _ if found.contains(PollFlags::ERR) => Carrier::Gone,
        _ if found.contains(PollFlags::OUT) => Carrier::Up,
        _ => Carrier::Down,
    })
}

/// Monitors the carriers of all ports.
#[derive(Default)]
pub struct CarrierMonitor {
    /// By port: its name, its probe, and the carrier at the last look.
    ports: Vec<(String, CarrierProbe, Carrier)>,
}

impl CarrierMonitor {
    /// Monitors ports, each given by its name, an open port, and whether it is up before the first look.
    pub fn of<'p>(
        ports: impl Iterator<Item = (&'p String, &'p AnyPort, bool)>,
    ) -> Result<CarrierMonitor, DaemonError> {
        let probe = |(name, port, up): (&String, &AnyPort, bool)| {
            let carrier = if up { Carrier::Up } else { Carrier::Down };
            Ok((name.clone(), CarrierProbe::of(name, port)?, carrier))
        };
        Ok(CarrierMonitor { ports: ports.map(probe).collect::<Result<_, DaemonError>>()? })
    }

    /// The ports whose carrier changed since the last look. One that was removed is not looked at again: an interface that
    /// takes its name later has no port.
    pub fn changed(&mut self) -> Vec<LinkChange> {
        let present = self.ports.iter_mut().enumerate().filter(|(_, (.., last))| *last != Carrier::Gone);
        let changes = present.filter_map(|(port, (name, probe, last))| {
            let found = probe.carrier().filter(|found| found != last)?;
            *last = found;
            let gone = (found == Carrier::Gone).then(|| name.clone());
            Some(LinkChange { port, up: found == Carrier::Up, gone })
        });
        changes.collect()
    }
}

/// The change of a port's carrier.
pub struct LinkChange {
    pub port: usize,
    pub up: bool,
    /// The name of the interface, if it was removed.
    pub gone: Option<String>,
}
