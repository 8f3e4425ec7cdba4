//! The wiring as text and as SVG.

use std::fmt::Write;

use super::layout::{DrawnNode, DrawnWire, WiringLayout};
use super::wiring::Wiring;

/// Pixels of a character.
const ACROSS: usize = 8;
const DOWN: usize = 18;
const MARGIN: usize = 16;

/// The wiring in characters.
pub fn draw_text(wiring: &Wiring) -> String {
    let layout = WiringLayout::of(wiring);
    let mut canvas = vec![vec![' '; layout.width]; layout.height];
    layout.nodes.iter().for_each(|node| draw_node(&mut canvas, node));
    layout.wires.iter().for_each(|wire| draw_wire(&mut canvas, wire));
    layout.ports.iter().for_each(|port| put(&mut canvas, port.row, port.left, &port.text));
    let lines = canvas.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned());
    lines.map(|line| line + "\n").collect()
}

fn draw_node(canvas: &mut [Vec<char>], node: &DrawnNode) {
    let rule = "─".repeat(node.width - 2);
    put(canvas, node.top, node.left, &format!("┌{rule}┐"));
    for row in node.top + 1..node.top + node.height - 1 {
        put(canvas, row, node.left, &format!("│{}│", " ".repeat(node.width - 2)));
    }
    put(canvas, node.top + node.height - 1, node.left, &format!("└{rule}┘"));
    (1..).zip(&node.lines).for_each(|(row, line)| put(canvas, node.top + row, node.left + 2, line));
}

/// From the edge of one box to that of the next.
fn draw_wire(canvas: &mut [Vec<char>], wire: &DrawnWire) {
    let line = "─".repeat(wire.length - 1);
    let shown = if wire.is_back { format!("├◀{line}┤") } else { format!("├{line}▶┤") };
    put(canvas, wire.row, wire.left - 1, &shown);
}

fn put(canvas: &mut [Vec<char>], row: usize, left: usize, text: &str) {
    let Some(line) = canvas.get_mut(row) else { return };
    line.iter_mut().skip(left).zip(text.chars()).for_each(|(place, character)| *place = character);
}

/// The wiring as a picture.
pub fn draw_svg(wiring: &Wiring) -> String {
    let layout = WiringLayout::of(wiring);
    let (width, height) = (x(layout.width) + MARGIN, y(layout.height) + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
         <defs><marker id=\"arrow\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\">\
         <path d=\"M0,0 L9,4 L0,8 z\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escaped(&wiring.inventory.title)
    );
    layout.nodes.iter().for_each(|node| svg_node(&mut svg, node));
    layout.wires.iter().for_each(|wire| svg_wire(&mut svg, wire));
    for port in &layout.ports {
        svg_text(&mut svg, [port.left, port.row], &port.text, "fill=\"#333\" font-size=\"12\"");
    }
    svg.push_str("</svg>\n");
    svg
}

fn svg_node(svg: &mut String, node: &DrawnNode) {
    let [width, height] = [node.width * ACROSS, (node.height - 1) * DOWN];
    let _ = writeln!(
        svg,
        "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#f4f6f8\" stroke=\"#456\"/>",
        x(node.left),
        y(node.top)
    );
    let styles = ["font-weight=\"bold\"", "fill=\"#456\""];
    for ((row, line), style) in (1..).zip(&node.lines).zip(styles) {
        svg_text(svg, [node.left + 2, node.top + row], line, style);
    }
}

fn svg_wire(svg: &mut String, wire: &DrawnWire) {
    let ends = [x(wire.left), x(wire.left + wire.length)];
    let [from, to] = if wire.is_back { [ends[1], ends[0]] } else { ends };
    let row = y(wire.row);
    let _ = writeln!(
        svg,
        "<line x1=\"{from}\" y1=\"{row}\" x2=\"{to}\" y2=\"{row}\" stroke=\"black\" stroke-width=\"1.5\" \
         marker-end=\"url(#arrow)\"/>"
    );
}

fn svg_text(svg: &mut String, [left, row]: [usize; 2], text: &str, style: &str) {
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" {style}>{}</text>", x(left), y(row) + 4, escaped(text));
}

fn x(column: usize) -> usize {
    MARGIN + column * ACROSS
}

fn y(row: usize) -> usize {
    MARGIN + row * DOWN
}

fn escaped(text: &str) -> String {
    let shown = text.replace(|letter: char| letter.is_control(), " ");
    shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
