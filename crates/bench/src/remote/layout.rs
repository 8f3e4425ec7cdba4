//! Where the parts of a drawing of the wiring stand, in characters.
//!
//! The nodes stand in columns: senders, the device under test, its endpoint, the receiver. Each wire is a row.

use super::inventory::{NodeRole, NodeSettings};
use super::wiring::{PortPlace, Wiring};

/// Rows of characters from one wire to the next, so that boxes of two senders do not touch.
const PITCH: usize = 5;
const TITLE_ROWS: usize = 3;
const GAP: usize = 10;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnNode {
    pub left: usize,
    pub top: usize,
    pub width: usize,
    pub height: usize,
    pub lines: [String; 2],
}

/// Words at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnPort {
    pub left: usize,
    pub row: usize,
    pub text: String,
}

/// A wire from left to right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnWire {
    pub left: usize,
    pub length: usize,
    pub row: usize,
    /// Whether packets go to the left.
    pub is_back: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WiringLayout {
    pub nodes: Vec<DrawnNode>,
    pub ports: Vec<DrawnPort>,
    pub wires: Vec<DrawnWire>,
    pub width: usize,
    pub height: usize,
}

/// A wire whose ends are in their order from left to right.
struct WireRow {
    ends: [PortPlace; 2],
    row: usize,
}

impl WiringLayout {
    pub fn of(wiring: &Wiring) -> WiringLayout {
        let columns = columns(wiring);
        let rows = rows(wiring, &columns);
        let mut layout = WiringLayout::default();
        let mut left = 0;
        let mut edges = vec![[0, 0]; wiring.inventory.nodes.len()];
        for nodes in &columns {
            let width = nodes.iter().map(|node| node_width(wiring, &rows, *node)).max().unwrap_or(0);
            for node in nodes {
                edges[*node] = [left, left + width];
                layout.nodes.push(drawn_node(wiring, &rows, *node, [left, width]));
            }
            left += width + GAP;
        }
        rows.iter().for_each(|row| layout.add_wire(wiring, row, &edges));
        layout.width = left - GAP;
        layout.height = layout.nodes.iter().map(|node| node.top + node.height).max().unwrap_or(0);
        layout
    }

    fn add_wire(&mut self, wiring: &Wiring, row: &WireRow, edges: &[[usize; 2]]) {
        let [one, other] = row.ends;
        let (left, right) = (edges[one.node][1], edges[other.node][0]);
        let [near, far] = [one, other].map(|port| port_text(wiring, port));
        self.ports.push(DrawnPort { left: left - 2 - near.chars().count(), row: row.row, text: near });
        self.ports.push(DrawnPort { left: right + 2, row: row.row, text: far });
        let is_back = wiring.node(one).receives(wiring.interface(one));
        self.wires.push(DrawnWire { left, length: right - left, row: row.row, is_back });
    }
}

fn columns(wiring: &Wiring) -> Vec<Vec<usize>> {
    let nodes = &wiring.inventory.nodes;
    let of = |column: usize| (0..nodes.len()).filter(|node| nodes[*node].role.column() == column).collect();
    (0..=NodeRole::Receiver.column()).map(of).filter(|nodes: &Vec<usize>| !nodes.is_empty()).collect()
}

/// The wires between two columns, in rows that begin at the top for each pair.
fn rows(wiring: &Wiring, columns: &[Vec<usize>]) -> Vec<WireRow> {
    let column = |port: PortPlace| columns.iter().position(|nodes| nodes.contains(&port.node));
    let mut wires: Vec<[PortPlace; 2]> = wiring.wires.clone();
    wires.iter_mut().for_each(|ends| ends.sort_by_key(|port| column(*port)));
    wires.sort_by_key(|[one, other]| (column(*one), one.node, one.interface, other.interface));
    let mut rows: Vec<WireRow> = Vec::new();
    for ends in wires {
        let before = rows.iter().filter(|row| column(row.ends[0]) == column(ends[0])).count();
        rows.push(WireRow { ends, row: TITLE_ROWS + PITCH * before });
    }
    rows
}

fn port_text(wiring: &Wiring, port: PortPlace) -> String {
    let interface = wiring.interface(port);
    format!("{} {}", interface.name, interface.address)
}

fn titles(node: &NodeSettings) -> [String; 2] {
    [format!("{} ({})", node.name, node.host), node.role.word().to_owned()]
}

/// Wide enough for its titles, and for the ports of both sides in one row.
fn node_width(wiring: &Wiring, rows: &[WireRow], node: usize) -> usize {
    let side = |side: usize| {
        let ports = rows.iter().map(|row| row.ends[side]).filter(|port| port.node == node);
        ports.map(|port| port_text(wiring, port).chars().count() + 2).max().unwrap_or(0)
    };
    let title = titles(&wiring.inventory.nodes[node]).iter().map(|title| title.chars().count()).max();
    (side(0) + side(1) + 2).max(title.unwrap_or(0) + 4)
}

fn drawn_node(wiring: &Wiring, rows: &[WireRow], node: usize, [left, width]: [usize; 2]) -> DrawnNode {
    let own = rows.iter().filter(|row| row.ends.iter().any(|port| port.node == node)).map(|row| row.row);
    let (first, last) = own.fold((usize::MAX, 0), |(first, last), row| (first.min(row), last.max(row)));
    let first = first.min(last.max(TITLE_ROWS));
    let top = first - TITLE_ROWS;
    DrawnNode {
        left,
        top,
        width,
        height: last.max(first) + 2 - top,
        lines: titles(&wiring.inventory.nodes[node]),
    }
}
