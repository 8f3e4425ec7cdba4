//! Whether the nodes and the wires of a test bed are as its inventory says.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde::Serialize;

use super::bed::{ConnectedNode, connect_all};
use super::error::RemoteError;
use super::page::{processor, threads};
use super::protocol::{AgentReply, AgentRequest, ExchangeRequest, HeardMark, NodeFacts};
use super::shell::output;
use super::wiring::{PortPlace, Wiring};

/// How long nodes send marks and listen.
const EXCHANGE: Duration = Duration::from_millis(1500);

/// What was found.
#[derive(Debug, Serialize)]
pub struct BedCheck {
    pub title: String,
    pub nodes: Vec<NodeCheck>,
    pub wires: Vec<WireCheck>,
}

/// A node.
#[derive(Debug, Serialize)]
pub struct NodeCheck {
    pub name: String,
    pub host: String,
    pub system: Option<String>,
    /// The version of this program that is installed there; what measures is a copy of this one.
    pub installed: Option<String>,
    pub facts: Option<NodeFacts>,
    /// What has to be changed.
    pub problems: Vec<String>,
}

/// A wire.
#[derive(Debug, Serialize)]
pub struct WireCheck {
    pub ends: [String; 2],
    pub state: WireState,
    /// Where the marks of each end arrived.
    pub heard: [Vec<String>; 2],
}

/// Whether frames of each end arrive at the other one, and there only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireState {
    Right,
    Wrong,
    /// A node at one end runs no agent, or has a problem
    Unknown,
}

impl BedCheck {
    /// Connects to the nodes of an inventory, and looks at them. Nothing is changed there.
    pub fn of(wiring: &Wiring) -> BedCheck {
        let connected = connect_all(wiring);
        let nodes = (0..connected.len()).map(|node| NodeCheck::of(wiring, node, &connected[node])).collect();
        let heard = exchange(wiring, &connected);
        let check = |ends: &[PortPlace; 2]| WireCheck::of(wiring, &heard, *ends);
        let wires = wiring.wires.iter().map(check).collect();
        BedCheck { title: wiring.inventory.title.clone(), nodes, wires }
    }

    /// Whether a measurement could begin.
    pub fn is_right(&self) -> bool {
        let has_problem = self.nodes.iter().any(|node| !node.problems.is_empty());
        !has_problem && self.wires.iter().all(|wire| wire.state != WireState::Wrong)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.title);
        self.nodes.iter().for_each(|node| node.write(&mut text));
        self.wires.iter().for_each(|wire| wire.write(&mut text));
        text
    }
}

impl NodeCheck {
    fn of(wiring: &Wiring, node: usize, connected: &Result<ConnectedNode, RemoteError>) -> NodeCheck {
        let settings = &wiring.inventory.nodes[node];
        let (name, host) = (settings.name.clone(), settings.host.clone());
        match connected {
            Err(error) => {
                let problems = vec![error.to_string()];
                NodeCheck { name, host, system: None, installed: None, facts: None, problems }
            }
            Ok(connected) => NodeCheck {
                name,
                host,
                system: Some(connected.system.clone()),
                installed: output(&connected.host, "fullview --version 2>/dev/null")
                    .ok()
                    .filter(|version| !version.is_empty()),
                facts: connected.agent.as_ref().map(|agent| agent.facts.clone()),
                problems: problems(wiring, node, connected),
            },
        }
    }

    fn write(&self, text: &mut String) {
        let NodeCheck { name, host, system, installed, facts, problems } = self;
        let _ = writeln!(text, "{name} ({host}): {}", system.as_deref().unwrap_or("not reached"));
        if let Some(facts) = facts {
            let version = installed.as_deref().unwrap_or("no fullview");
            let _ =
                writeln!(text, "  {}, {} threads; installed: {version}", processor(facts), threads(facts));
            for interface in &facts.interfaces {
                let driver = interface.driver.as_deref().unwrap_or("no driver");
                let link = if interface.carrier { "link" } else { "no link" };
                let speed = interface.speed.map(|speed| format!(", {speed} Mb/s")).unwrap_or_default();
                let _ = writeln!(text, "  {}: {}, {link}, {driver}{speed}", interface.name, interface.mac);
            }
        }
        problems.iter().for_each(|problem| _ = writeln!(text, "  problem: {problem}"));
    }
}

fn problems(wiring: &Wiring, node: usize, connected: &ConnectedNode) -> Vec<String> {
    let Some(agent) = &connected.agent else { return Vec::new() };
    let there = || agent.facts.interfaces.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
    let problem = |port: PortPlace| {
        let settings = wiring.interface(port);
        let name = &settings.name;
        match connected.interface(name) {
            None => Some(format!("it has no interface {name}; it has {}", there())),
            Some(found) if !found.up => {
                Some(format!("{name} is down; `ip link set dev {name} up` there brings it up"))
            }
            Some(found) if !found.carrier => Some(format!("{name} has no link: is the wire plugged in?")),
            Some(found) => settings
                .mac
                .as_ref()
                .filter(|mac| !mac.eq_ignore_ascii_case(&found.mac))
                .map(|mac| format!("{name} has the address {}, and the inventory says {mac}", found.mac)),
        }
    };
    wiring.ports_of(node).filter_map(problem).collect()
}

/// The marks that each node heard; nothing of a node that cannot listen.
type Heard = Vec<Option<Vec<HeardMark>>>;

/// Lets all nodes send marks and listen at once.
fn exchange(wiring: &Wiring, connected: &[Result<ConnectedNode, RemoteError>]) -> Heard {
    let token = RandomState::new().hash_one(std::process::id());
    let asked: Vec<_> =
        connected.iter().enumerate().map(|(node, one)| ask(wiring, node, one, token)).collect();
    let answer = |agent: Option<_>| {
        let agent: &super::connection::AgentConnection = agent?;
        match agent.answer(EXCHANGE) {
            Ok(AgentReply::Heard(heard)) => Some(heard),
            _ => None,
        }
    };
    asked.into_iter().map(answer).collect()
}

fn ask<'c>(
    wiring: &Wiring,
    node: usize,
    connected: &'c Result<ConnectedNode, RemoteError>,
    token: u64,
) -> Option<&'c super::connection::AgentConnection> {
    let connected = connected.as_ref().ok()?;
    let agent = connected.agent.as_ref()?;
    let settings = &wiring.inventory.nodes[node];
    let names = settings.interfaces.iter().map(|interface| interface.name.clone());
    let up = |name: &String| connected.interface(name).is_some_and(|interface| interface.up);
    let interfaces = names.filter(up).collect();
    let milliseconds = u64::try_from(EXCHANGE.as_millis()).unwrap_or(u64::MAX);
    let request = ExchangeRequest { node: settings.name.clone(), token, interfaces, milliseconds };
    agent.send(&AgentRequest::Exchange(request)).ok()?;
    Some(agent)
}

impl WireCheck {
    fn of(wiring: &Wiring, heard: &Heard, ends: [PortPlace; 2]) -> WireCheck {
        let labels = ends.map(|port| wiring.label(port));
        let places = labels.clone().map(|label| places(wiring, heard, &label));
        let known = ends.iter().all(|port| heard[port.node].is_some());
        let is_right = places[0] == [labels[1].clone()] && places[1] == [labels[0].clone()];
        let state = match (known, is_right) {
            (false, _) => WireState::Unknown,
            (true, true) => WireState::Right,
            (true, false) => WireState::Wrong,
        };
        WireCheck { ends: labels, state, heard: places }
    }

    fn write(&self, text: &mut String) {
        let [one, other] = &self.ends;
        let _ = match self.state {
            WireState::Right => writeln!(text, "{one} – {other}: right"),
            WireState::Unknown => writeln!(text, "{one} – {other}: not checked, one end cannot listen"),
            WireState::Wrong => {
                let [first, second] = self.heard.clone().map(|places| match places[..] {
                    [] => "nowhere".to_owned(),
                    _ => places.join(", "),
                });
                writeln!(
                    text,
                    "{one} – {other}: wrong: frames of {one} arrive at {first}, frames of {other} at {second}"
                )
            }
        };
    }
}

/// Where the marks of a port arrived.
fn places(wiring: &Wiring, heard: &Heard, from: &str) -> Vec<String> {
    let nodes = heard.iter().zip(&wiring.inventory.nodes);
    let of_node = |(marks, node): (&Option<Vec<HeardMark>>, &super::inventory::NodeSettings)| {
        let marks = marks.iter().flatten().filter(|mark| mark.from == from);
        marks.map(|mark| format!("{}:{}", node.name, mark.interface)).collect::<Vec<_>>()
    };
    nodes.flat_map(of_node).collect()
}
