//! Through which ports frames go: a router without a kernel is told by nobody, so it looks.

use std::os::fd::OwnedFd;

use fullview_plane::port::PortError;
use fullview_plane::port::link::Link;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::daemon::ports::AnyPort;

/// What a port stands on.
enum Line {
    /// An interface of ours. Its other end, which may have become another namespace's, is up or not.
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

impl Line {
    fn of(name: &str, port: &AnyPort) -> anyhow::Result<Line> {
        Ok(match port {
            AnyPort::Tap(port) => Line::Tap(port.as_fd().try_clone_to_owned()?),
            _ => Line::Card(Link::named(name)?),
        })
    }

    /// What cannot be found out is as if nobody had looked.
    fn carrier(&self) -> Option<Carrier> {
        match self {
            Line::Tap(file) => tap_carrier(file),
            Line::Card(link) => match link.is_running() {
                Ok(true) => Some(Carrier::Up),
                Ok(false) => Some(Carrier::Down),
                Err(PortError::Removed { .. }) => Some(Carrier::Gone),
                Err(_) => None,
            },
        }
    }
}

/// The kernel takes frames as long as its end is set up, and has nothing but an error once that is removed
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

/// Of all ports.
pub struct Carriers {
    /// By port: its name, what it stands on, and how that was last.
    lines: Vec<(String, Line, Carrier)>,
}

impl Carriers {
    /// Up, or down until the first look.
    pub fn of<'p>(ports: impl Iterator<Item = (&'p String, &'p AnyPort, bool)>) -> anyhow::Result<Carriers> {
        let line = |(name, port, up): (&String, &AnyPort, bool)| {
            let carrier = if up { Carrier::Up } else { Carrier::Down };
            Ok((name.clone(), Line::of(name, port)?, carrier))
        };
        Ok(Carriers { lines: ports.map(line).collect::<anyhow::Result<_>>()? })
    }

    /// What is otherwise than at the last look. Who comes again after it was gone has no port any more.
    pub fn changed(&mut self) -> Vec<Change> {
        let there = self.lines.iter_mut().enumerate().filter(|(_, (.., last))| *last != Carrier::Gone);
        let changes = there.filter_map(|(port, (name, line, last))| {
            let found = line.carrier().filter(|found| found != last)?;
            *last = found;
            let gone = (found == Carrier::Gone).then(|| name.clone());
            Some(Change { port, up: found == Carrier::Up, gone })
        });
        changes.collect()
    }
}

/// Of a port.
pub struct Change {
    pub port: usize,
    pub up: bool,
    /// Its name, if it was removed.
    pub gone: Option<String>,
}
