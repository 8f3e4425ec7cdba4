//! The ports of a router as sources of samples.

use std::net::{Ipv4Addr, UdpSocket};

use fullview_plane::sample::PacketSample;
use rustix::net::netdevice::name_to_index;

/// A port as the source of samples.
pub struct SampledPort {
    name: String,
    /// The kernel's number of the interface, once it is known.
    pub index: Option<u32>,
    /// Packets that could have been sampled.
    pub pool: u64,
    /// Samples of which nothing was sent because there was no room for them.
    pub drops: u64,
    /// Samples that came here.
    pub samples: u64,
}

/// All ports, by number.
pub struct SampledPorts(Vec<SampledPort>);

impl SampledPorts {
    pub fn new(names: &[String]) -> SampledPorts {
        let port =
            |name: &String| SampledPort { name: name.clone(), index: None, pool: 0, drops: 0, samples: 0 };
        let mut ports = SampledPorts(names.iter().map(port).collect());
        ports.find_indices();
        ports
    }

    /// An interface that is made again has another number.
    pub fn find_indices(&mut self) {
        let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else { return };
        self.0.iter_mut().for_each(|port| port.index = name_to_index(&socket, &port.name).ok());
    }

    pub fn all(&self) -> &[SampledPort] {
        &self.0
    }

    pub fn port(&self, number: u16) -> Option<&SampledPort> {
        self.0.get(usize::from(number))
    }

    /// The kernel's number of a port's interface.
    pub fn index(&self, number: u16) -> Option<u32> {
        self.port(number)?.index
    }

    /// Adds what a sample says about its port.
    pub fn count(&mut self, sample: &PacketSample) {
        if let Some(port) = self.0.get_mut(usize::from(sample.port)) {
            port.pool += sample.passed;
            port.drops += sample.lost;
            port.samples += 1;
        }
    }
}
