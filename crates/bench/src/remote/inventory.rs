//! The inventory of a test bed: hosts, wires and devices.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A file of `fullview rates --testbed`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Inventory {
    pub title: String,
    #[serde(default)]
    pub ssh: SshSettings,
    pub nodes: Vec<NodeSettings>,
    /// Pairs of `NODE:INTERFACE`.
    pub wires: Vec<[String; 2]>,
    pub devices: Vec<DeviceSettings>,
}

/// How nodes are connected to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SshSettings {
    /// A configuration file for `ssh -F`, relative to the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeRole {
    Sender,
    Receiver,
    SenderReceiver,
    /// The device under test
    Dut,
    /// The other end of a tunnel of the device under test
    Endpoint,
}

/// A host.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeSettings {
    pub name: String,
    /// What `ssh` is told: an alias of its configuration, or `USER@HOST`.
    pub host: String,
    pub role: NodeRole,
    /// Whether this program runs there.
    #[serde(default = "yes")]
    pub agent: bool,
    /// The path of this program there. Without it, it is copied there for the time of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The generator's core; of the device under test, the one that is profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<usize>,
    /// A trial has ended when nothing more has arrived at this receiver for so many milliseconds.
    #[serde(default = "usual_settle")]
    pub settle_ms: u64,
    pub interfaces: Vec<InterfaceSettings>,
    /// Lines for its shell, before the first device and after the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// An interface of the test bed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterfaceSettings {
    pub name: String,
    pub address: InterfaceNet,
    /// What it must be; without it, what the node says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Of a node that sends and receives: whether this interface sends.
    #[serde(default)]
    pub sends: bool,
    /// Of a node that receives: whether packets come here only when the other interface fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spare: bool,
}

/// An address with the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceNet {
    pub address: Ipv4Addr,
    pub length: u8,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// The Linux kernel's forwarding
    Kernel,
    /// `fullview forward`
    Fullview,
    /// Lines for the node's shell
    Command,
    /// A Linux kernel that does not forward, to see that nothing gets past it
    Off,
}

/// A device that is measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceSettings {
    pub name: String,
    pub kind: DeviceKind,
    /// The word of `--engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Further arguments of `fullview forward`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Lines for the shell of the node, before and after it is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

fn yes() -> bool {
    true
}

fn usual_settle() -> u64 {
    50
}

impl NodeRole {
    /// How messages and drawings name it.
    pub fn word(self) -> &'static str {
        match self {
            NodeRole::Sender => "sender",
            NodeRole::Receiver => "receiver",
            NodeRole::SenderReceiver => "sender and receiver",
            NodeRole::Dut => "device under test",
            NodeRole::Endpoint => "endpoint",
        }
    }

    pub fn is_host(self) -> bool {
        !matches!(self, NodeRole::Dut | NodeRole::Endpoint)
    }
}

impl NodeSettings {
    /// Whether packets start at this interface.
    pub fn sends(&self, interface: &InterfaceSettings) -> bool {
        match self.role {
            NodeRole::Sender => true,
            NodeRole::SenderReceiver => interface.sends,
            _ => false,
        }
    }

    /// Whether packets end at this interface.
    pub fn receives(&self, interface: &InterfaceSettings) -> bool {
        match self.role {
            NodeRole::Receiver => !interface.spare,
            NodeRole::SenderReceiver => !interface.sends && !interface.spare,
            _ => false,
        }
    }

    /// Whether packets end at this interface when the other one fails.
    pub fn receives_instead(&self, interface: &InterfaceSettings) -> bool {
        interface.spare && !interface.sends
    }
}

impl TryFrom<String> for InterfaceNet {
    type Error = String;

    fn try_from(text: String) -> Result<InterfaceNet, String> {
        let parsed = text.split_once('/').and_then(|(address, length)| {
            let (address, length) = (address.parse().ok()?, length.parse().ok()?);
            (1..=32).contains(&length).then_some(InterfaceNet { address, length })
        });
        parsed
            .ok_or_else(|| format!("\"{text}\" is no IPv4 address with a length, such as \"198.18.0.1/24\""))
    }
}

impl From<InterfaceNet> for String {
    fn from(net: InterfaceNet) -> String {
        format!("{}/{}", net.address, net.length)
    }
}

impl std::fmt::Display for InterfaceNet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.address, self.length)
    }
}
