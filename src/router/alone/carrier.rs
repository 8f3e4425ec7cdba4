//! Through which ports frames go: a router without a kernel is told by nobody, so it looks.

use std::os::fd::OwnedFd;

use fullview_plane::port::PortError;
use fullview_plane::port::link::Link;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::command::say;
use crate::router::ports::AnyPort;

/// What a port stands on.
enum Line {
    /// An interface of ours. Its other end, which may have become another namespace's, is up or not.
    Tap(OwnedFd),
    /// A card.
    Card(Link),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
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
    fn state(&self) -> Option<State> {
        match self {
            Line::Tap(file) => tap_state(file),
            Line::Card(link) => match link.is_running() {
                Ok(true) => Some(State::Up),
                Ok(false) => Some(State::Down),
                Err(PortError::Removed { .. }) => Some(State::Gone),
                Err(_) => None,
            },
        }
    }
}

/// The kernel takes frames as long as its end is set up, and has nothing but an error once that is removed
/// (`tun_chr_poll` in its `drivers/net/tun.c`).
fn tap_state(file: &OwnedFd) -> Option<State> {
    let mut fds = [PollFd::new(file, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()?;
    let found = fds[0].revents();
    Some(match found {
        _ if found.contains(PollFlags::ERR) => State::Gone,
        _ if found.contains(PollFlags::OUT) => State::Up,
        _ => State::Down,
    })
}

/// Of all ports.
pub struct Carriers {
    /// By port: its name, what it stands on, and how that was last.
    lines: Vec<(String, Line, State)>,
}

impl Carriers {
    /// All count as down until the first look.
    pub fn of<'p>(ports: impl Iterator<Item = (&'p String, &'p AnyPort)>) -> anyhow::Result<Carriers> {
        let line = |(name, port): (&String, &AnyPort)| Ok((name.clone(), Line::of(name, port)?, State::Down));
        Ok(Carriers { lines: ports.map(line).collect::<anyhow::Result<_>>()? })
    }

    /// The ports that are otherwise than at the last look, and whether frames go through now.
    pub fn changed(&mut self) -> Vec<(usize, bool)> {
        let mut changed = Vec::new();
        for (port, (name, line, last)) in self.lines.iter_mut().enumerate() {
            let state = line.state().unwrap_or(*last);
            let before = std::mem::replace(last, state);
            if state != before && state == State::Gone {
                say(&format!("interface {name} was removed; it is used again after a restart"));
            }
            if (state == State::Up) != (before == State::Up) {
                changed.push((port, state == State::Up));
            }
        }
        changed
    }
}
