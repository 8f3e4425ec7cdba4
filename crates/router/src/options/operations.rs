//! Options of the services around a running router: control socket, metrics, capture of drops, flow export.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

/// The services that a router starts; one that is `None` is not started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationsOptions {
    /// The path of the control socket.
    pub control: Option<PathBuf>,
    /// The address at which metrics are served.
    pub metrics: Option<MetricsAddress>,
    /// The capture of dropped packets.
    pub capture_drops: Option<CaptureOptions>,
    /// The export of samples.
    pub export: Option<ExportOptions>,
}

/// The address at which metrics are served: `127.0.0.1:9100`, `[::1]:9100`, or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        if text.contains('/') {
            return Ok(MetricsAddress::Unix(text.into()));
        }
        text.parse().map(MetricsAddress::Tcp).map_err(|_| {
            format!("{text:?} is neither ADDRESS:PORT, such as 127.0.0.1:9100, nor the path of a socket")
        })
    }
}

impl<'de> Deserialize<'de> for MetricsAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The file of a capture, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    pub file: PathBuf,
    /// The size in bytes at which the file stops growing.
    pub bytes: u64,
    /// Packets beyond this rate are left out.
    pub packets_per_second: u64,
}

impl CaptureOptions {
    pub const BYTES: u64 = 64 << 20;
    pub const PACKETS_PER_SECOND: u64 = 1000;
}

/// What is exported, and to which collectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOptions {
    /// The collector of sFlow, if there is one.
    pub sflow: Option<SocketAddr>,
    /// The collector of IPFIX, if there is one.
    pub ipfix: Option<SocketAddr>,
    /// The address that datagrams of sFlow name as the router's; the socket's own if `None`.
    pub agent: Option<IpAddr>,
    /// One received packet in so many is sampled.
    pub sample: NonZeroU32,
    /// How often the counters of interfaces, and the templates of IPFIX, are sent.
    pub counters: Duration,
}
