//! Choices that both the command line and the configuration file offer.

use std::net::IpAddr;

use clap::ValueEnum;
use fullview_plane::interface::InterfaceAddress;
use serde::Deserialize;

/// What forwards packets. The comments of the variants are help text of `--engine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// A program in the kernel, for each interface where it is fastest; threads where the kernel takes no such program
    #[default]
    Auto,
    /// A program in the kernel, at tc: any driver
    Tc,
    /// A program in the kernel, in the driver (XDP)
    Xdp,
    /// A program in the kernel, behind the driver (XDP)
    XdpGeneric,
    /// Threads of this program
    #[value(alias = "user")]
    #[serde(alias = "user")]
    Threads,
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
    let (ip, len): (IpAddr, u8) = parts
        .ok_or_else(|| format!("'{text}' is not an address with a prefix length, such as 192.0.2.1/24"))?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    match len <= longest {
        true => Ok(InterfaceAddress { ip, len }),
        false => Err(format!("'{text}': prefix lengths of this family are at most {longest}")),
    }
}
