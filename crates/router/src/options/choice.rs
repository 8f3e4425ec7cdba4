//! Choices that both the command line and the configuration file offer.

use clap::ValueEnum;
use fullview_plane::interface::InterfaceAddress;
use serde::Deserialize;

/// What forwards packets. The comments of the variants are help text of `--engine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// Threads of this program
    #[default]
    User,
    /// An XDP program, in the driver
    Xdp,
    /// An XDP program, behind the driver
    XdpGeneric,
}

/// How frames reach the workers. The comments of the variants are help text of `--port`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortName {
    /// Packet sockets: any driver
    #[default]
    Packet,
    /// AF_XDP sockets; the router ends if they do not work
    Xdp,
    /// AF_XDP sockets where they work, packet sockets elsewhere
    Auto,
    /// A TAP interface that the router creates (`kernel = false` in a file of `--config`)
    #[value(skip)]
    Tap,
}

impl PortName {
    /// Whether the router tries to open AF_XDP sockets.
    pub fn may_be_xdp(self) -> bool {
        matches!(self, PortName::Xdp | PortName::Auto)
    }
}

/// Parses an address with the prefix length of its network, as `192.0.2.1/24`.
pub fn interface_address(text: &str) -> Result<InterfaceAddress, String> {
    let parts = text.split_once('/').and_then(|(ip, len)| Some((ip.parse().ok()?, len.parse().ok()?)));
    let (ip, len) = parts
        .ok_or_else(|| format!("'{text}' is not an address with a prefix length, such as 192.0.2.1/24"))?;
    Ok(InterfaceAddress { ip, len })
}
