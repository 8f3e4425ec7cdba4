//! What clients send, and what is counted of it.

use std::time::Duration;

use crate::settings::{ClientName, ClientSettings, Offloads};

/// Bytes of a UDP payload, and of the answer to an HTTP request, unless the experiment says otherwise.
const BYTES: u16 = 64;

/// What a turn counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTurn {
    pub counted: u64,
    pub offered: u64,
    pub time: Duration,
}

/// The load of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLoad {
    pub client: ClientName,
    /// TCP connections, or curl's that take requests in parallel.
    pub connections: u16,
    /// Bytes of a UDP payload, or of the answer to an HTTP request.
    pub bytes: u16,
    pub offloads: Offloads,
}

impl ClientLoad {
    /// The load that the settings name; none without a client.
    pub fn of(settings: &ClientSettings) -> Option<ClientLoad> {
        Some(ClientLoad {
            client: settings.load?,
            connections: settings.connections.unwrap_or(1),
            bytes: settings.bytes.unwrap_or(BYTES),
            offloads: settings.offloads.unwrap_or(Offloads::Default),
        })
    }

    /// What a rate of this load counts.
    pub fn metric(self) -> &'static str {
        match self.client {
            ClientName::Tcp | ClientName::TcpBack => "kilobits-per-second carried",
            ClientName::Udp => "packets-per-second carried",
            ClientName::Http => "requests-per-second carried",
        }
    }
}

/// The programs that a client needs, and the Debian package of each.
pub fn programs_of(client: ClientName) -> &'static [(&'static str, &'static str)] {
    match client {
        ClientName::Http => &[("curl", "curl"), ("ethtool", "ethtool")],
        _ => &[("iperf3", "iperf3"), ("ethtool", "ethtool")],
    }
}
