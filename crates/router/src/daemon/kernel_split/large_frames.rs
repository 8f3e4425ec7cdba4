//! Which interfaces leave all TCP to the kernel.
//!
//! Packet sockets leave large frames to the kernel: those that hold several segments, and those longer than a slot. The kernel
//! chooses among several next hops by another hash than workers, so the small frames of a connection would take another way
//! than its large ones. While a route has several next hops, the small ones are therefore left to the kernel too.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fullview_plane::adjacency::MAX_MTU;
use fullview_plane::port::PortError;
use fullview_plane::port::link::Link;

use crate::daemon::hook::SPLITTING;
use crate::log;
use crate::route::LinkIndex;

/// The kernel does not say which of its reports of a link are about offloads, so these are read again after this time.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct LargeFrames {
    /// Whether packets of any route may take one of several next hops.
    has_several: bool,
    /// When offloads were last read.
    read_at: Option<Instant>,
    /// The devices that receive several segments in one frame, while a route has several next hops.
    devices: BTreeSet<LinkIndex>,
    /// The devices that the log has named: routes come and go.
    warned: BTreeSet<LinkIndex>,
}

impl LargeFrames {
    /// Follows whether a route has several next hops, and the offloads of these links. Returns whether [`Self::leaves_tcp`] may have
    /// changed.
    pub fn follow(&mut self, has_several: bool, links: &[Link]) -> bool {
        let is_same = self.has_several == has_several;
        self.has_several = has_several;
        if is_same && !self.is_due() {
            return false;
        }
        self.read(links) || !is_same
    }

    fn is_due(&self) -> bool {
        self.has_several && self.read_at.is_none_or(|at| at.elapsed() >= INTERVAL)
    }

    /// Returns whether the devices are other ones.
    fn read(&mut self, links: &[Link]) -> bool {
        self.read_at = Some(Instant::now());
        let receive_large = links.iter().filter(|link| self.has_several && receives_several(link));
        let devices: BTreeSet<_> = receive_large.map(Link::index).collect();
        // A link that comes later may have the index of one that is gone.
        self.warned.retain(|index| links.iter().any(|link| link.index() == *index));
        for link in links.iter().filter(|link| devices.contains(&link.index())) {
            if self.warned.insert(link.index()) {
                log::warning(&line(link.name()));
            }
        }
        let before = std::mem::replace(&mut self.devices, devices);
        before != self.devices
    }

    /// Whether TCP that comes in by a device with this MTU is left to the kernel.
    pub fn leaves_tcp(&self, device: LinkIndex, mtu: u32) -> bool {
        self.has_several && (mtu > MAX_MTU.into() || self.devices.contains(&device))
    }
}

/// Whether a frame of this link may hold several segments of TCP. What cannot be read is taken as true.
fn receives_several(link: &Link) -> bool {
    let splits = || Ok(SPLITTING.contains(&link.driver()?.as_str()));
    let holds = |fact: Result<bool, PortError>| fact.unwrap_or(true);
    holds(splits()) || holds(link.merges_frames()) || holds(link.runs_gro())
}

fn line(interface: &str) -> String {
    format!(
        "interface {interface}: the kernel forwards TCP while routes have several next hops, because it gets frames of several \
         segments and would send them another way than a worker the others; `--engine tc` forwards such frames, and \
         `ethtool -K {interface} gro off lro off` splits what a card merges"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_left_to_the_kernel_where_frames_are_large_and_a_next_hop_is_chosen() {
        let left = |large: &LargeFrames| {
            [(1, 1500), (2, 1500), (2, 9000)].map(|(device, mtu)| large.leaves_tcp(device, mtu))
        };
        let large = |has_several| LargeFrames { has_several, devices: [1].into(), ..LargeFrames::default() };
        assert_eq!(left(&large(true)), [true, false, true]);
        assert_eq!(left(&large(false)), [false; 3], "there is nothing to choose");
    }
}
