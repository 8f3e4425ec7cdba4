//! Counts the parameters of the synthetic model from a real table and prints them as the source that holds them:
//! `cargo run --release -p fullview-table --example synthetic_parameters -- full-view.txt.gz inet >
//! crates/table/src/feed/synthetic/parameters/counted_inet.rs`, and the same with `inet6`.

use std::error::Error;

use fullview_table::Family;
use fullview_table::feed::synthetic::parameters::{Halves, INET, INET6, Own};
use fullview_table::feed::{self, Options};

#[path = "../tests/support/measure.rs"]
mod measure;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, family] = arguments.as_slice() else { return Err("usage: TABLE inet|inet6".into()) };
    let table = feed::load(path.as_ref(), &Options::default())?.table;
    match Family::named(family).ok_or("the family is inet or inet6")? {
        Family::Inet => print(&measure::measure(&table.inet, &INET)),
        Family::Inet6 => print(&measure::measure(&table.inet6, &INET6)),
    }
    Ok(())
}

fn print(measured: &measure::Measured) {
    println!("//! Printed by `examples/synthetic_parameters.rs`; not to be edited.\n");
    println!("use super::{{Level, halves, own}};\n");
    print_pairs("BLOCKS: [(u16, u32)", &measured.blocks);
    print_pairs("TAIL: [(u8, u32)", &measured.tail);
    println!("#[rustfmt::skip] // all in a line");
    println!("pub(super) const LENGTHS: [u32; {}] = {:?};\n", measured.lengths.len(), measured.lengths);
    println!("#[rustfmt::skip] // several a line");
    println!("pub(super) const LEVELS: [Level; {}] = [", measured.levels.len());
    for (own, halves) in &measured.levels {
        println!("    Level {{\n        own: &[");
        print_lines(own.iter().map(own_text).collect(), 5);
        println!("        ],\n        halves: &[");
        print_lines(halves.iter().map(halves_text).collect(), 2);
        println!("        ],\n    }},");
    }
    println!("];");
}

fn print_lines(rows: Vec<String>, a_line: usize) {
    rows.chunks(a_line).for_each(|line| println!("            {},", line.join(", ")));
}

fn print_pairs<T: std::fmt::Display>(head: &str, pairs: &[(T, u32)]) {
    println!("#[rustfmt::skip] // several a line");
    println!("pub(super) const {head}; {}] = [", pairs.len());
    for line in pairs.chunks(8) {
        let line: Vec<String> = line.iter().map(|(key, count)| format!("({key}, {count}),")).collect();
        println!("    {}", line.join(" "));
    }
    println!("];\n");
}

fn own_text(row: &Own) -> String {
    let Own { case, share } = row;
    compact(format!("own({case}, {share:?})"))
}

fn halves_text(row: &Halves<Vec<u16>>) -> String {
    let Halves { case, emptier, lower, alike } = row;
    compact(format!("halves({case}, &{emptier:?}, {lower}, {alike})"))
}

/// There are thousands of rows.
fn compact(row: String) -> String {
    row.replace(' ', "")
}
