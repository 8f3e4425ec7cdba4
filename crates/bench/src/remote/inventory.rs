//! The inventory of a test bed: hosts, wires and devices.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use fullview_table::Family;
use serde::{Deserialize, Serialize};

use super::declared::DeclaredTuning;
use crate::rates::family_of;

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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookSettings>,
}

/// When a hook runs, relative to the search of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookTime {
    Before,
    During,
    After,
}

/// A command on a node whose output is kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HookSettings {
    pub node: String,
    pub when: HookTime,
    /// For `sh`.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Only these; without it, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
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
    /// Lines that run pkt-gen where this program does not run, with names in braces (`traffic_line`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<String>,
    pub interfaces: Vec<InterfaceSettings>,
    /// Settings of the machine that are verified, and set with `set-tuning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<DeclaredTuning>,
    /// Whether declared settings that differ are set, and put back at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_tuning: bool,
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
    pub address: IpAddr,
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

/// Something that a command installs, after which the host may start again.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImageSettings {
    /// For `sh`.
    pub install: String,
    /// Prints what runs.
    pub running: String,
    /// What that prints if the image runs.
    pub expected: String,
    /// How long the first may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_seconds: Option<u64>,
    /// How long it may take after it until the image runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_seconds: Option<u64>,
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
    /// What has to run on the node, where that takes long to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSettings>,
    /// Whether every block has it, and the others are compared with it block by block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Files and folders, relative to the inventory, with their paths on the node while it is measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<PathBuf, String>,
    /// Settings of the node while it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<DeclaredTuning>,
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

impl Inventory {
    /// The device with which the others are compared.
    pub fn control(&self) -> Option<&DeviceSettings> {
        self.devices.iter().find(|device| device.control)
    }
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

    /// The column of the node, from where packets start to where they end. Wires lead from one to another.
    pub fn column(self) -> usize {
        match self {
            NodeRole::Sender | NodeRole::SenderReceiver => 0,
            NodeRole::Dut => 1,
            NodeRole::Endpoint => 2,
            NodeRole::Receiver => 3,
        }
    }

    pub fn is_host(self) -> bool {
        !matches!(self, NodeRole::Dut | NodeRole::Endpoint)
    }
}

impl NodeSettings {
    /// The names of its interfaces.
    pub fn interface_names(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.clone()).collect()
    }

    /// Whether an interface has an address of IPv6.
    pub fn has_inet6(&self) -> bool {
        self.interfaces.iter().any(|interface| interface.address.family() == Family::Inet6)
    }

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
        let parsed = text.split_once('/').and_then(|(address, digits)| {
            let (address, length) = (address.parse::<IpAddr>().ok()?, digits.parse::<u8>().ok()?);
            let bits = if address.is_ipv4() { 32 } else { 128 };
            let is_length = (1..=bits).contains(&length) && length.to_string() == digits;
            is_length.then_some(InterfaceNet { address, length })
        });
        parsed.ok_or_else(|| {
            format!(
                "\"{text}\" is no address with a length, such as \"198.18.0.1/24\" or \"2001:2:0:1::1/64\""
            )
        })
    }
}

impl InterfaceNet {
    pub fn family(&self) -> Family {
        family_of(self.address)
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
