//! The wiring of an inventory, checked: which port is joined with which, and the ways of the packets.

use std::collections::BTreeSet;

use fullview_table::Family;

use super::error::RemoteError;
use super::inventory::{DeviceKind, HookSettings, InterfaceSettings, Inventory, NodeRole, NodeSettings};
use crate::rates::{HostAddresses, LAST_CORE};

/// An interface of a node, by their places in the inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortPlace {
    pub node: usize,
    pub interface: usize,
}

/// An inventory whose parts fit together.
#[derive(Clone, Debug)]
pub struct Wiring {
    pub inventory: Inventory,
    pub wires: Vec<[PortPlace; 2]>,
    pub dut: usize,
    /// Where packets start.
    pub sending: Vec<PortPlace>,
    /// Where they end.
    pub receiving: PortPlace,
    /// Where they end when its wire fails.
    pub spare: Option<PortPlace>,
}

impl Wiring {
    /// Checks an inventory. The error names the node or wire, and says what to change.
    pub fn of(inventory: Inventory) -> Result<Wiring, String> {
        check_names(&inventory)?;
        let wires = wires(&inventory)?;
        let dut = only(&inventory, NodeRole::Dut, "one node with role = \"dut\"")?;
        let sending = ports(&inventory, NodeSettings::sends);
        let receiving = match ports(&inventory, NodeSettings::receives)[..] {
            [port] => port,
            ref found => {
                return Err(format!("one interface receives, and here are {}: {}", found.len(), HOSTS));
            }
        };
        let spare = match ports(&inventory, NodeSettings::receives_instead)[..] {
            [] => None,
            [port] if port.node == receiving.node => Some(port),
            _ => return Err(SPARE.into()),
        };
        if sending.is_empty() {
            return Err(format!("no interface sends: {HOSTS}"));
        }
        let wiring = Wiring { inventory, wires, dut, sending, receiving, spare };
        wiring.check_addresses()?;
        wiring.check_ways()?;
        wiring.check_networks()?;
        wiring.check_devices()?;
        Ok(wiring)
    }

    pub fn node(&self, port: PortPlace) -> &NodeSettings {
        &self.inventory.nodes[port.node]
    }

    pub fn interface(&self, port: PortPlace) -> &InterfaceSettings {
        &self.node(port).interfaces[port.interface]
    }

    /// Whether the node at which packets end sends all of them.
    pub fn has_one_clock(&self) -> bool {
        self.sending.iter().all(|port| port.node == self.receiving.node)
    }

    /// `NODE:INTERFACE`.
    pub fn label(&self, port: PortPlace) -> String {
        format!("{}:{}", self.node(port).name, self.interface(port).name)
    }

    /// The other end of the wire of a port; every port has one.
    pub fn peer(&self, port: PortPlace) -> Option<PortPlace> {
        self.wires.iter().find_map(|[one, other]| match port {
            _ if port == *one => Some(*other),
            _ if port == *other => Some(*one),
            _ => None,
        })
    }

    /// The port of the dut at whose wire packets end; nothing if an endpoint is between.
    pub fn routed_port(&self) -> Option<PortPlace> {
        self.peer(self.receiving).filter(|port| port.node == self.dut)
    }

    /// The ports of the dut to the receiver: the usual one, or the one that takes over.
    pub fn egress(&self, spare: bool) -> Option<PortPlace> {
        if spare { self.peer(self.spare?) } else { self.routed_port() }
    }

    /// Whether devices have images, which take long to change.
    pub fn has_images(&self) -> bool {
        self.inventory.devices.iter().any(|device| device.image.is_some())
    }

    /// Whether this program runs on the dut, which can then do more than forward.
    pub fn has_dut_agent(&self) -> bool {
        self.inventory.nodes[self.dut].agent
    }

    /// The addresses of the packets from a port, which a checked wiring has in one family.
    pub fn hosts(&self, port: PortPlace) -> Result<HostAddresses, RemoteError> {
        let [source, destination] = [port, self.receiving].map(|port| self.interface(port).address.address);
        HostAddresses::new(source, destination)
            .ok_or_else(|| RemoteError::Families { port: self.label(port) })
    }

    /// The family of all packets.
    pub fn family(&self) -> Family {
        self.interface(self.receiving).address.family()
    }

    /// The ports of a node.
    pub fn ports_of(&self, node: usize) -> impl Iterator<Item = PortPlace> {
        (0..self.inventory.nodes[node].interfaces.len()).map(move |interface| PortPlace { node, interface })
    }

    fn role_behind(&self, port: PortPlace) -> Option<NodeRole> {
        self.peer(port).map(|peer| self.node(peer).role)
    }

    fn check_ways(&self) -> Result<(), String> {
        let is_elsewhere = |port: &&PortPlace| self.role_behind(**port) != Some(NodeRole::Dut);
        if let Some(port) = self.sending.iter().find(is_elsewhere) {
            return Err(format!("{} sends, so its wire has to lead to the dut", self.label(*port)));
        }
        let of_other_family = |port: &&PortPlace| self.interface(**port).address.family() != self.family();
        if let Some(port) = self.sending.iter().find(of_other_family) {
            let [from, to] = [*port, self.receiving].map(|port| self.label(port));
            return Err(format!("{from} sends to {to}, so their addresses have to be of one family"));
        }
        let endpoint = self.inventory.nodes.iter().any(|node| node.role == NodeRole::Endpoint);
        let (last, word) = if endpoint { (NodeRole::Endpoint, "endpoint") } else { (NodeRole::Dut, "dut") };
        if self.role_behind(self.receiving) != Some(last) {
            return Err(format!(
                "{} receives, so its wire has to lead to the {word}",
                self.label(self.receiving)
            ));
        }
        if self.spare.is_some_and(|port| self.role_behind(port) != Some(NodeRole::Dut)) {
            return Err(SPARE.into());
        }
        let is_joined = |port| self.role_behind(port) == Some(NodeRole::Endpoint);
        if endpoint && !self.ports_of(self.dut).any(is_joined) {
            return Err("no wire joins the dut with the endpoint".into());
        }
        Ok(())
    }

    fn check_devices(&self) -> Result<(), String> {
        let has_agent = self.inventory.nodes[self.dut].agent;
        for device in &self.inventory.devices {
            let name = &device.name;
            if !has_agent && device.kind != DeviceKind::Command {
                return Err(format!(
                    "device {name}: on a dut with agent = false only kind = \"command\" can be measured"
                ));
            }
            if device.engine.is_some() != (device.kind == DeviceKind::Fullview) {
                return Err(format!(
                    "device {name}: `engine` belongs to kind = \"fullview\", and that needs one"
                ));
            }
            if device.kind == DeviceKind::Command && device.start.is_empty() {
                return Err(format!("device {name}: kind = \"command\" needs lines in `start`"));
            }
        }
        self.check_agents()?;
        self.check_traffic()?;
        self.check_images()?;
        self.check_hooks()?;
        self.check_tuning()
    }

    /// A device without an image would be measured on that of the device before.
    fn check_images(&self) -> Result<(), String> {
        let devices = &self.inventory.devices;
        let (images, controls) = (
            devices.iter().filter(|device| device.image.is_some()).count(),
            devices.iter().filter(|device| device.control).count(),
        );
        if images > 0 && images < devices.len() {
            return Err("if a device has an `image`, each of them needs one".into());
        }
        match controls {
            0 if images > 0 => Err("one of the devices with images needs `control = true`".into()),
            0 | 1 => Ok(()),
            _ => Err("one device at most has `control = true`".into()),
        }
    }

    fn check_hooks(&self) -> Result<(), String> {
        for HookSettings { node, command, devices, .. } in &self.inventory.hooks {
            let has_device = |name: &String| self.inventory.devices.iter().any(|device| device.name == *name);
            if !self.inventory.nodes.iter().any(|one| one.name == *node) {
                return Err(format!("hook `{command}`: there is no node {node}"));
            }
            if let Some(unknown) = devices.iter().find(|name| !has_device(name)) {
                return Err(format!("hook `{command}`: there is no device {unknown}"));
            }
        }
        Ok(())
    }

    /// Settings are read and set by the agent.
    fn check_tuning(&self) -> Result<(), String> {
        let dut = &self.inventory.nodes[self.dut];
        let of_nodes = self.inventory.nodes.iter().map(|node| (&node.tuning, node));
        let of_devices = self.inventory.devices.iter().map(|device| (&device.tuning, dut));
        for (tuning, node) in of_nodes.chain(of_devices) {
            let Some(tuning) = tuning else { continue };
            let name = &node.name;
            if !node.agent {
                return Err(format!("node {name}: `tuning` needs an agent there; use lines in `start`"));
            }
            tuning.check(&node.interface_names()).map_err(|error| format!("node {name}: {error}"))?;
        }
        Ok(())
    }

    fn check_agents(&self) -> Result<(), String> {
        for node in &self.inventory.nodes {
            let name = &node.name;
            let unknown = node.interfaces.iter().find(|interface| !node.agent && interface.mac.is_none());
            if let Some(InterfaceSettings { name: interface, .. }) = unknown {
                return Err(format!(
                    "node {name}, interface {interface}: with agent = false it needs its `mac`"
                ));
            }
        }
        Ok(())
    }
}

const HOSTS: &str = "give a node role = \"sender\" and another one role = \"receiver\", or one role = \"sender-receiver\" \
                     with `sends = true` at the interface that sends";

const SPARE: &str = "one interface at most has `spare = true`: another one of the node that receives, whose wire leads to the dut";

fn only(inventory: &Inventory, role: NodeRole, what: &str) -> Result<usize, String> {
    let found: Vec<usize> =
        (0..inventory.nodes.len()).filter(|node| inventory.nodes[*node].role == role).collect();
    match found[..] {
        [node] => Ok(node),
        _ => Err(format!("there has to be {what}, and here are {}", found.len())),
    }
}

fn ports(inventory: &Inventory, is_wanted: fn(&NodeSettings, &InterfaceSettings) -> bool) -> Vec<PortPlace> {
    let of_node = |(node, settings): (usize, &NodeSettings)| {
        let wanted: Vec<_> = (0..settings.interfaces.len())
            .filter(|interface| is_wanted(settings, &settings.interfaces[*interface]))
            .map(|interface| PortPlace { node, interface })
            .collect();
        wanted
    };
    inventory.nodes.iter().enumerate().flat_map(of_node).collect()
}

fn check_names(inventory: &Inventory) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let nodes = inventory.nodes.iter().map(|node| ("node", &node.name));
    for (what, name) in nodes.chain(inventory.devices.iter().map(|device| ("device", &device.name))) {
        check_word(what, name)?;
        if !seen.insert((what, name)) {
            return Err(format!("two {what}s are named {name}"));
        }
    }
    if inventory.devices.is_empty() {
        return Err("there is nothing to measure: add [[devices]]".into());
    }
    inventory.nodes.iter().try_for_each(check_node)
}

fn check_node(node: &NodeSettings) -> Result<(), String> {
    let NodeSettings { name, host, .. } = node;
    if host.is_empty()
        || host.starts_with('-')
        || host.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Err(format!("node {name}: {host:?} is no host of ssh"));
    }
    for InterfaceSettings { name: interface, mac, .. } in &node.interfaces {
        check_word("interface", interface)?;
        let is_mac =
            mac.as_ref().is_none_or(|mac| mac.parse::<fullview_plane::wire::ethernet::Mac>().is_ok());
        if !is_mac {
            return Err(format!("node {name}, interface {interface}: `mac` is no Ethernet address"));
        }
    }
    check_core(node)?;
    let is_path = |program: &String| program.starts_with('/') && !program.contains(['\'', '\n']);
    match &node.program {
        Some(program) if !is_path(program) => {
            Err(format!("node {name}: `program` has to be a path that begins with /, without quotes"))
        }
        _ => Ok(()),
    }
}

/// Each interface that sends has a core of its own, one after the other.
fn check_core(node: &NodeSettings) -> Result<(), String> {
    let sending = node.interfaces.iter().filter(|interface| node.sends(interface)).count().max(1);
    match node.core {
        Some(core) if core > (LAST_CORE + 1).saturating_sub(sending) => Err(format!(
            "node {}: `core` is {core}, and {sending} have to be there from this one on: cores have the numbers 0 to {LAST_CORE}",
            node.name
        )),
        _ => Ok(()),
    }
}

fn check_word(what: &str, word: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.@-".contains(c);
    let is_word = word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(fits);
    let length = if what == "interface" { 15 } else { 40 };
    if is_word && word.len() <= length {
        return Ok(());
    }
    Err(format!("{word:?} is no name of a {what}: letters, digits and _.@- of at most {length} characters"))
}

fn wires(inventory: &Inventory) -> Result<Vec<[PortPlace; 2]>, String> {
    let mut joined = BTreeSet::new();
    let mut wires = Vec::new();
    for [one, other] in &inventory.wires {
        let ends = [find(inventory, one)?, find(inventory, other)?];
        for (end, name) in ends.iter().zip([one, other]) {
            if !joined.insert(*end) {
                return Err(format!("{name} is at two wires"));
            }
        }
        check_columns(inventory, ends)?;
        wires.push(ends);
    }
    let all = ports(inventory, |_, _| true);
    match all.iter().find(|port| !joined.contains(port)) {
        None => Ok(wires),
        Some(port) => {
            let node = &inventory.nodes[port.node];
            let name = &node.interfaces[port.interface].name;
            Err(format!(
                "no wire leads to {}:{name}: add it to `wires`, or take the interface out",
                node.name
            ))
        }
    }
}

/// Packets go from one column to the next, and drawings have room for wires only between them.
fn check_columns(inventory: &Inventory, ends: [PortPlace; 2]) -> Result<(), String> {
    let [one, other] = ends.map(|port| &inventory.nodes[port.node]);
    if one.role.column() != other.role.column() {
        return Ok(());
    }
    let [from, to] = ends.map(|port| {
        let NodeSettings { name, interfaces, .. } = &inventory.nodes[port.node];
        format!("{name}:{}", interfaces[port.interface].name)
    });
    let [role, end] = [one, other].map(|node| node.role.word());
    Err(format!(
        "no packets go by the wire from {from} ({role}) to {to} ({end}): take it out of `wires`, and its interfaces out of \
         their nodes"
    ))
}

fn find(inventory: &Inventory, end: &str) -> Result<PortPlace, String> {
    let found = end.rsplit_once(':').and_then(|(node, interface)| {
        let node = inventory.nodes.iter().position(|one| one.name == node)?;
        let interface = inventory.nodes[node].interfaces.iter().position(|one| one.name == interface)?;
        Some(PortPlace { node, interface })
    });
    found.ok_or_else(|| format!("the wire's end \"{end}\" is no NODE:INTERFACE of this file"))
}
