//! The ports of a router as sources of samples.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use fullview_plane::sample::PacketSample;
use rustix::net::netdevice::name_to_index;

/// The pause between two searches for the numbers of interfaces.
const PAUSE: Duration = Duration::from_secs(1);

/// A port as the source of samples.
pub struct SampledPort {
    name: String,
    /// The kernel's number of the interface, once it is known.
    pub index: Option<u32>,
    /// Packets that could have been sampled.
    pub pool: u64,
    /// Samples of which nothing was sent: there was no room for them, or the interface had no number.
    pub drops: u64,
    /// Samples that came here while the interface had a number.
    pub samples: u64,
}

/// All ports, by number.
pub struct SampledPorts {
    ports: Vec<SampledPort>,
    /// When the numbers of interfaces were searched for.
    searched: Instant,
}

impl SampledPorts {
    pub fn new(names: &[String]) -> SampledPorts {
        let port =
            |name: &String| SampledPort { name: name.clone(), index: None, pool: 0, drops: 0, samples: 0 };
        let mut ports = SampledPorts { ports: names.iter().map(port).collect(), searched: Instant::now() };
        ports.find_indices();
        ports
    }

    /// An interface that is made again has another number.
    pub fn find_indices(&mut self) {
        self.searched = Instant::now();
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else { return };
        self.ports.iter_mut().for_each(|port| port.index = name_to_index(&socket, &port.name).ok());
    }

    /// As [`Self::find_indices`], unless that was done a moment ago.
    pub fn find_indices_again(&mut self) {
        if self.searched.elapsed() >= PAUSE {
            self.find_indices();
        }
    }

    pub fn all(&self) -> &[SampledPort] {
        &self.ports
    }

    pub fn port(&self, number: u16) -> Option<&SampledPort> {
        self.ports.get(usize::from(number))
    }

    /// The kernel's number of a port's interface.
    pub fn index(&self, number: u16) -> Option<u32> {
        self.port(number)?.index
    }

    /// Adds what a sample says about its port.
    pub fn count(&mut self, sample: &PacketSample) {
        if let Some(port) = self.ports.get_mut(usize::from(sample.port)) {
            port.count(sample.passed, sample.lost);
        }
    }
}

impl SampledPort {
    fn count(&mut self, passed: u64, lost: u64) {
        let has_number = self.index.is_some();
        self.pool += passed;
        self.drops += lost + u64::from(!has_number);
        self.samples += u64::from(has_number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_an_interface_without_a_number_count_as_dropped() {
        let mut ports = SampledPorts::new(&["lo".into(), "absent".into()]);
        ports.ports.iter_mut().for_each(|port| port.count(100, 2));
        let counts = |port: &SampledPort| (port.index.is_some(), port.pool, port.drops, port.samples);
        assert_eq!(counts(&ports.ports[0]), (true, 100, 2, 1));
        assert_eq!(counts(&ports.ports[1]), (false, 100, 3, 0));
    }
}
