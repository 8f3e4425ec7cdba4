//! What both the command line and the configuration file can name.

use clap::ValueEnum;
use fullview_plane::interface::InterfaceAddress;
use serde::Deserialize;

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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortName {
    /// Packet sockets: any driver
    #[default]
    Packet,
    /// AF_XDP sockets, or none
    Xdp,
    /// AF_XDP sockets where they work, packet sockets elsewhere
    Auto,
    /// An interface of our own, for a router without a kernel (`--config`)
    #[value(skip)]
    Tap,
}

impl PortName {
    /// Whether AF_XDP sockets are tried.
    pub fn may_be_xdp(self) -> bool {
        matches!(self, PortName::Xdp | PortName::Auto)
    }
}

/// An address and the prefix length of its network.
pub fn interface_address(text: &str) -> Result<InterfaceAddress, String> {
    let parts = text.split_once('/').and_then(|(ip, len)| Some((ip.parse().ok()?, len.parse().ok()?)));
    let (ip, len) = parts.ok_or_else(|| format!("'{text}' is no address with a length, as 192.0.2.1/24"))?;
    Ok(InterfaceAddress { ip, len })
}
