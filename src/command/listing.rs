//! Tables of text.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// A table with these headings. The columns named in `numbers` are aligned right.
pub fn table<const N: usize>(headings: [&str; N], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(headings);
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub fn print(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}
