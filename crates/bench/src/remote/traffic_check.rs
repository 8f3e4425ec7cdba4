//! Whether an inventory says how packets are sent and received.

use super::inventory::{Inventory, NodeRole, NodeSettings};
use super::traffic_line::{LineNames, RECEIVE, SEND};
use super::wiring::{PortPlace, Wiring};

impl Wiring {
    /// Whether a line of the inventory sends, instead of this program.
    pub fn has_send_line(&self) -> bool {
        self.sending.iter().any(|port| self.node(*port).send.is_some())
    }

    /// The same of receiving.
    pub fn has_receive_line(&self) -> bool {
        self.node(self.receiving).receive.is_some()
    }

    /// Where this program does not run, lines send and receive.
    pub(super) fn check_traffic(&self) -> Result<(), String> {
        let Inventory { nodes, .. } = &self.inventory;
        nodes
            .iter()
            .try_for_each(|node| check_node(node).map_err(|error| format!("node {}: {error}", node.name)))?;
        let has_line = |port: &&PortPlace| self.node(**port).send.is_some();
        if self.has_send_line() && !self.sending.iter().all(|port| has_line(&port)) {
            return Err(
                "either all hosts that send have a line in `send`, or none: they have to begin at once"
                    .into(),
            );
        }
        if self.has_receive_line() && self.spare.is_some() {
            return Err("`spare = true` needs a receiver without a line in `receive`".into());
        }
        Ok(())
    }
}

fn check_node(node: &NodeSettings) -> Result<(), String> {
    let does = |role| node.role == role || node.role == NodeRole::SenderReceiver;
    check_line(node, "send", node.send.as_deref(), does(NodeRole::Sender), &SEND)?;
    check_line(node, "receive", node.receive.as_deref(), does(NodeRole::Receiver), &RECEIVE)
}

fn check_line(
    node: &NodeSettings,
    key: &str,
    line: Option<&str>,
    is_its_role: bool,
    names: &LineNames,
) -> Result<(), String> {
    match line {
        None if is_its_role && !node.agent => Err(format!("agent = false needs a line in `{key}`")),
        None => Ok(()),
        Some(_) if node.agent || !is_its_role => {
            Err(format!("`{key}` is for a host that does so with agent = false"))
        }
        Some(line) => names.check(line).map_err(|error| format!("`{key}`: {error}")),
    }
}
