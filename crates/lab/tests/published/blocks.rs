//! The published results in `tests/data`: samples, labels and the ministat block printed for them.

use fullview_lab::ministat::Set;

/// The results of eleven years of forwarding benchmarks.
pub const BENCHMARKS: &str = include_str!("../data/ministat-blocks.txt");
/// The results of two reports; a source is the report and the family.
pub const REPORTS: &str = include_str!("../data/report-blocks.txt");

/// One published result.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub source: String,
    pub sets: Vec<Set>,
    /// The block in its published form: see [`as_published`].
    pub text: String,
}

/// Reads a file of `tests/data`; its first lines describe the form.
pub fn read(file: &str) -> Vec<Block> {
    file.split("\n= ").skip(1).map(block).collect()
}

/// Returns the result with this source in [`REPORTS`].
pub fn report(source: &str) -> Block {
    read(REPORTS).into_iter().find(|block| block.source == source).expect(source)
}

fn block(text: &str) -> Block {
    let (data, text) = text.split_once("\n-\n").expect("a line \"-\" between the sets and the block");
    let (source, sets) = data.split_once('\n').expect("a source and sets");
    Block {
        source: source.into(),
        sets: sets.lines().map(set).collect(),
        text: text.trim_end().to_owned() + "\n",
    }
}

fn set(line: &str) -> Set {
    let (label, values) = line.split_once('\t').expect("a tab behind the label");
    Set {
        label: label.into(),
        values: values.split(' ').map(|value| value.parse().expect("a figure")).collect(),
    }
}

/// Converts ministat's output to its published form: tabs are eight spaces, and lines have no trailing blanks.
pub fn as_published(text: &str) -> String {
    text.lines().map(|line| line.replace('\t', "        ").trim_end().to_owned() + "\n").collect()
}
