//! The nodes of a test bed, connected.

use std::thread;

use serde::Serialize;

use super::connection::AgentConnection;
use super::error::RemoteError;
use super::inventory::{InterfaceSettings, NodeSettings};
use super::protocol::{AgentRequest, InterfaceFacts, NodeFacts};
use super::shell::{RemoteLines, output};
use super::ssh::SshHost;
use super::wiring::{PortPlace, Wiring};

/// A node. The fields are dropped in this order.
pub struct ConnectedNode {
    lines: Option<RemoteLines>,
    pub agent: Option<AgentConnection>,
    /// What a node without an agent says it is.
    pub system: String,
    pub host: SshHost,
}

/// All nodes of an inventory. Dropping it ends what runs there.
pub struct RemoteBed {
    pub nodes: Vec<ConnectedNode>,
    pub wiring: Wiring,
}

/// A node for the record.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedNode {
    pub name: String,
    pub system: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<NodeFacts>,
}

impl ConnectedNode {
    /// Connects to a node, and starts the agent there.
    pub fn connect(wiring: &Wiring, settings: &NodeSettings) -> Result<ConnectedNode, RemoteError> {
        let host = SshHost::connect(settings, wiring.inventory.ssh.config.as_deref())?;
        let system = output(&host, "uname -srm")?;
        let agent = settings.agent.then(|| AgentConnection::start(&host, settings)).transpose()?;
        Ok(ConnectedNode { lines: None, agent, system, host })
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
        let mut bed = RemoteBed { nodes, wiring };
        bed.check_interfaces()?;
        bed.prepare()?;
        Ok(bed)
    }

    fn check_interfaces(&self) -> Result<(), RemoteError> {
        let nodes = 0..self.nodes.len();
        nodes.flat_map(|node| self.wiring.ports_of(node)).try_for_each(|port| self.mac(port).map(drop))
    }

    fn prepare(&mut self) -> Result<(), RemoteError> {
        for (node, settings) in self.nodes.iter_mut().zip(&self.wiring.inventory.nodes) {
            if let (Some(agent), true) = (&node.agent, settings.role.is_host()) {
                let names = settings.interfaces.iter().map(|interface| interface.name.clone());
                agent.ask(&AgentRequest::Host(names.collect()))?;
            }
            if !(settings.start.is_empty() && settings.stop.is_empty()) {
                node.lines = Some(RemoteLines::start(&node.host, &settings.start, &settings.stop)?);
            }
        }
        self.count()
    }

    /// The receiver counts the packets of the measurement.
    fn count(&self) -> Result<(), RemoteError> {
        let InterfaceSettings { name, address, .. } = self.wiring.interface(self.wiring.receiving);
        let request = AgentRequest::CountAt { interface: name.clone(), destination: address.address };
        let agent = self.nodes[self.wiring.receiving.node].agent.as_ref();
        agent.map_or(Ok(()), |agent| agent.ask(&request).map(drop))
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
        let record = |(node, settings): (&ConnectedNode, &NodeSettings)| RecordedNode {
            name: settings.name.clone(),
            system: node.system.clone(),
            facts: node.agent.as_ref().map(|agent| agent.facts.clone()),
        };
        self.nodes.iter().zip(&self.wiring.inventory.nodes).map(record).collect()
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
