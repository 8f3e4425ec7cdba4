//! The nodes of a test bed, connected.

use std::thread;

use serde::Serialize;

use super::command_receiver::CommandReceiver;
use super::connection::AgentConnection;
use super::declared::{DeclaredTuning, TunedSetting};
use super::error::RemoteError;
use super::inventory::{InterfaceSettings, NodeSettings};
use super::laid_files::put_back_files;
use super::protocol::{AgentReply, AgentRequest, InterfaceFacts, NodeFacts, TuneRequest};
use super::shell::{RemoteLines, output};
use super::ssh::SshHost;
use super::tuning::{Tuning, difference};
use super::wiring::{PortPlace, Wiring};

/// A node. The fields are dropped in this order.
pub struct ConnectedNode {
    pub receiver: Option<CommandReceiver>,
    lines: Option<RemoteLines>,
    /// Declared settings with their values before.
    tuned: Vec<TunedSetting>,
    pub agent: Option<AgentConnection>,
    /// What a node without an agent says it is.
    pub system: String,
    pub host: SshHost,
}

/// All nodes of an inventory. Dropping it ends what runs there.
pub struct RemoteBed {
    pub nodes: Vec<ConnectedNode>,
    /// What has to stay as it was when the nodes were prepared; nothing of nodes without an agent.
    tuning: Vec<Option<Tuning>>,
    pub wiring: Wiring,
}

/// A node for the record.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedNode {
    pub name: String,
    pub system: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<NodeFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tuned: Vec<TunedSetting>,
}

impl ConnectedNode {
    /// Connects to a node, and starts the agent there.
    pub fn connect(wiring: &Wiring, settings: &NodeSettings) -> Result<ConnectedNode, RemoteError> {
        let host = SshHost::connect(settings, wiring.inventory.ssh.config.as_deref())?;
        let system = output(&host, "uname -srm")?;
        let agent = settings.agent.then(|| AgentConnection::start(&host, settings)).transpose()?;
        Ok(ConnectedNode { receiver: None, lines: None, tuned: Vec::new(), agent, system, host })
    }

    pub fn interface(&self, name: &str) -> Option<&InterfaceFacts> {
        self.agent.as_ref()?.facts.interfaces.iter().find(|interface| interface.name == name)
    }
}

impl RemoteBed {
    /// Connects to all nodes at once, checks their interfaces, and prepares them.
    pub fn connect(wiring: Wiring) -> Result<RemoteBed, RemoteError> {
        let connected = connect_all(&wiring);
        let nodes = connected.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut bed = RemoteBed { nodes, tuning: Vec::new(), wiring };
        bed.check_interfaces()?;
        bed.prepare()?;
        Ok(bed)
    }

    /// The agent on the device under test.
    pub fn dut_agent(&self) -> Result<&AgentConnection, RemoteError> {
        let node = || self.wiring.inventory.nodes[self.wiring.dut].name.clone();
        let agent = self.nodes[self.wiring.dut].agent.as_ref();
        agent.ok_or_else(|| RemoteError::NoAgent { node: node() })
    }

    fn check_interfaces(&self) -> Result<(), RemoteError> {
        let nodes = 0..self.nodes.len();
        nodes.flat_map(|node| self.wiring.ports_of(node)).try_for_each(|port| self.mac(port).map(drop))
    }

    /// Claims the interfaces of all nodes before it changes anything on one of them.
    fn prepare(&mut self) -> Result<(), RemoteError> {
        for (node, settings) in self.nodes.iter().zip(&self.wiring.inventory.nodes) {
            if let Some(agent) = &node.agent {
                let (interfaces, is_inet6) = (settings.interface_names(), settings.has_inet6());
                agent.ask(&AgentRequest::Claim { interfaces, is_inet6 })?;
            }
        }
        for (node, settings) in self.nodes.iter_mut().zip(&self.wiring.inventory.nodes) {
            if let (Some(agent), true) = (&node.agent, settings.role.is_host()) {
                let (interfaces, is_inet6) = (settings.interface_names(), settings.has_inet6());
                agent.ask(&AgentRequest::Host { interfaces, is_inet6 })?;
            }
            if !(settings.start.is_empty() && settings.stop.is_empty()) {
                node.lines = Some(RemoteLines::start(&node.host, &settings.start, &settings.stop)?);
            }
            if let (Some(agent), Some(tuning)) = (&node.agent, &settings.tuning) {
                node.tuned = tune(agent, settings, tuning, false)?;
            }
        }
        put_back_files(&self.nodes[self.wiring.dut].host, &self.wiring.inventory.devices, false)?;
        self.count()?;
        self.tuning = self.read_tuning()?;
        Ok(())
    }

    fn read_tuning(&self) -> Result<Vec<Option<Tuning>>, RemoteError> {
        let read = |(node, settings): (&ConnectedNode, &NodeSettings)| {
            let Some(agent) = &node.agent else { return Ok(None) };
            match agent.ask(&AgentRequest::Tuning(settings.interface_names()))? {
                AgentReply::Tuning(tuning) => Ok(Some(tuning)),
                other => Err(agent.unexpected(&other)),
            }
        };
        self.nodes.iter().zip(&self.wiring.inventory.nodes).map(read).collect()
    }

    /// Refuses to measure when a setting was changed by others since the nodes were prepared.
    pub fn check_tuning(&self) -> Result<(), RemoteError> {
        let now = self.read_tuning()?;
        let nodes = self.wiring.inventory.nodes.iter().zip(self.tuning.iter().zip(&now));
        nodes.into_iter().try_for_each(|(settings, (before, now))| unchanged(&settings.name, before, now))
    }

    /// Refuses to go on with machines that are not as they were recorded: one that was lost may have started again with
    /// another system or other settings.
    pub fn check_recorded(&self, recorded: &[RecordedNode]) -> Result<(), RemoteError> {
        self.record().iter().zip(recorded).try_for_each(|(now, before)| {
            let (setting, node) = ("the system".to_owned(), now.name.clone());
            if now.system != before.system {
                let (before, now) = (before.system.clone(), now.system.clone());
                return Err(RemoteError::Changed { node, setting, before, now });
            }
            unchanged(&now.name, &before.tuning, &now.tuning)
        })
    }

    /// The receiver counts the packets of the measurement.
    fn count(&mut self) -> Result<(), RemoteError> {
        let receiving = self.wiring.interface(self.wiring.receiving);
        let (node, settings) =
            (&mut self.nodes[self.wiring.receiving.node], self.wiring.node(self.wiring.receiving));
        node.receiver = CommandReceiver::start(&node.host, settings, receiving)?;
        let destination = receiving.address.address;
        let spare = self.wiring.spare.map(|port| self.wiring.interface(port));
        let agent = self.nodes[self.wiring.receiving.node].agent.as_ref();
        let count = |interface: &InterfaceSettings| {
            let request = AgentRequest::CountAt { interface: interface.name.clone(), destination };
            agent.map_or(Ok(()), |agent| agent.ask(&request).map(drop))
        };
        [receiving].into_iter().chain(spare).try_for_each(count)
    }

    /// The Ethernet address of a port, which is the one that the inventory says if it says one.
    pub fn mac(&self, port: PortPlace) -> Result<String, RemoteError> {
        let (settings, node) = (self.wiring.interface(port), &self.nodes[port.node]);
        let (name, interface) = (self.wiring.node(port).name.clone(), settings.name.clone());
        let Some(agent) = &node.agent else { return Ok(settings.mac.clone().unwrap_or_default()) };
        let Some(found) = node.interface(&interface) else {
            let there: Vec<&str> = agent.facts.interfaces.iter().map(|one| one.name.as_str()).collect();
            return Err(RemoteError::NoInterface { node: name, interface, found: there.join(", ") });
        };
        match &settings.mac {
            Some(said) if !said.eq_ignore_ascii_case(&found.mac) => {
                let (found, said) = (found.mac.clone(), said.clone());
                Err(RemoteError::OtherMac { node: name, interface, found, said })
            }
            _ => Ok(found.mac.clone()),
        }
    }

    /// The nodes for the record of a measurement.
    pub fn record(&self) -> Vec<RecordedNode> {
        type Known<'k> = ((&'k ConnectedNode, &'k NodeSettings), Option<Tuning>);
        let record = |((node, settings), tuning): Known<'_>| RecordedNode {
            name: settings.name.clone(),
            system: node.system.clone(),
            facts: node.agent.as_ref().map(|agent| agent.facts.clone()),
            tuning,
            tuned: node.tuned.clone(),
        };
        let tuning = self.tuning.iter().cloned();
        self.nodes.iter().zip(&self.wiring.inventory.nodes).zip(tuning).map(record).collect()
    }
}

fn unchanged(node: &str, before: &Option<Tuning>, now: &Option<Tuning>) -> Result<(), RemoteError> {
    let differs = before.as_ref().zip(now.as_ref()).and_then(|(before, now)| difference(before, now));
    let Some((setting, [before, now])) = differs else { return Ok(()) };
    Err(RemoteError::Changed { node: node.into(), setting, before, now })
}

/// Has a node compare and set what is declared: until the agent ends, or with the device.
pub fn tune(
    agent: &AgentConnection,
    node: &NodeSettings,
    tuning: &DeclaredTuning,
    of_device: bool,
) -> Result<Vec<TunedSetting>, RemoteError> {
    let (settings, may_set) = (tuning.settings(&node.interface_names()), node.set_tuning);
    match agent.ask(&AgentRequest::Tune(TuneRequest { settings, may_set, of_device }))? {
        AgentReply::Tuned(tuned) => Ok(tuned),
        other => Err(agent.unexpected(&other)),
    }
}

/// Connects to every node, at once.
pub fn connect_all(wiring: &Wiring) -> Vec<Result<ConnectedNode, RemoteError>> {
    thread::scope(|scope| {
        let connect = |settings| scope.spawn(move || ConnectedNode::connect(wiring, settings));
        let threads: Vec<_> = wiring.inventory.nodes.iter().map(connect).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}
