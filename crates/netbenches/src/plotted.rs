//! The data of published graphs.

/// A line of a `.data` file: a name, and what is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PlottedRow {
    pub file: String,
    /// From 1.
    pub line: usize,
    pub name: String,
    /// Median, minimum and maximum.
    pub figures: [f64; 3],
}

/// Reads the lines that end in three numbers. Graphs of other kinds have none.
pub fn rows(file: &str, text: &str) -> Vec<PlottedRow> {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    numbered.filter_map(|(at, line)| row(file, at + 1, line)).collect()
}

fn row(file: &str, line: usize, text: &str) -> Option<PlottedRow> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name @ .., median, least, most] = &words[..] else { return None };
    let figures = [median.parse().ok()?, least.parse().ok()?, most.parse().ok()?];
    (!name.is_empty()).then(|| PlottedRow { file: file.into(), line, name: name.join(" "), figures })
}
