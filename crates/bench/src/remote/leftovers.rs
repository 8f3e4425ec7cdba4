//! What killed agents and shells left on the nodes of a test bed.

use super::bed::{ConnectedNode, connect_all};
use super::error::RemoteError;
use super::inventory::NodeSettings;
use super::laid_files::put_back_files;
use super::protocol::{AgentReply, AgentRequest};
use super::wiring::Wiring;
use crate::testbed::{Leftover, LeftoverKind};

/// Connects to all nodes, and puts back what is left there; a dry run only says it.
pub fn put_back_on_nodes(wiring: &Wiring, dry_run: bool) -> Result<Vec<Leftover>, RemoteError> {
    let nodes = connect_all(wiring).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for (node, settings) in nodes.iter().zip(&wiring.inventory.nodes) {
        found.extend(left(LeftoverKind::Setting, settings, put_back_on(node, settings, dry_run)?));
    }
    let (dut, settings) = (&nodes[wiring.dut], &wiring.inventory.nodes[wiring.dut]);
    let files = put_back_files(&dut.host, &wiring.inventory.devices, dry_run)?;
    found.extend(left(LeftoverKind::File, settings, files));
    Ok(found)
}

fn put_back_on(
    node: &ConnectedNode,
    settings: &NodeSettings,
    dry_run: bool,
) -> Result<Vec<String>, RemoteError> {
    let Some(agent) = &node.agent else { return Ok(Vec::new()) };
    match agent.ask(&AgentRequest::Clean { interfaces: settings.interface_names(), dry_run })? {
        AgentReply::PutBack(settings) => Ok(settings),
        other => Err(agent.unexpected(&other)),
    }
}

fn left(kind: LeftoverKind, node: &NodeSettings, names: Vec<String>) -> impl Iterator<Item = Leftover> {
    names.into_iter().map(move |name| Leftover { kind, name: format!("{}: {name}", node.name) })
}
