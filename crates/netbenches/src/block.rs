//! ministat blocks in a published README, with the prose around them.

/// A block and the lines of prose next to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedBlock {
    /// Line of the README, from 1, at which the block begins.
    pub line: usize,
    pub text: String,
    /// The nearest lines of prose above and below it.
    pub before: Prose,
    pub after: Prose,
}

/// A line of the README, from 1, and what it says; nothing if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prose {
    pub line: usize,
    pub text: String,
}

impl PublishedBlock {
    /// The labels of the sets.
    pub fn labels(&self) -> Vec<&str> {
        let legend = self.text.lines().take_while(|line| !line.starts_with("+--"));
        legend.filter_map(|line| line.split_once(' ').map(|(_, label)| label)).collect()
    }

    /// Number, minimum, maximum, median, mean and standard deviation of each set, as they are printed.
    pub fn rows(&self) -> Vec<Vec<&str>> {
        let table = self.text.lines().skip_while(|line| !line.contains("Stddev")).skip(1);
        let words = table.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
        words
            .filter(|words| words.len() == 6 && words.iter().all(|word| word.parse::<f64>().is_ok()))
            .collect()
    }

    /// Columns of the plot.
    pub fn width(&self) -> Option<usize> {
        self.text.lines().find(|line| line.starts_with("+--")).map(|line| line.len().saturating_sub(2))
    }
}

/// Finds the ministat blocks of a README.
pub fn blocks(readme: &str) -> Vec<PublishedBlock> {
    let lines: Vec<&str> = readme.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("```")).collect();
    fences.chunks_exact(2).filter_map(|pair| block(&lines, pair[0], pair[1])).collect()
}

fn block(lines: &[&str], open: usize, close: usize) -> Option<PublishedBlock> {
    let text: String = lines[open + 1..close].iter().map(|line| format!("{line}\n")).collect();
    let prose = |at: Option<usize>| at.map(|at| Prose { line: at + 1, text: lines[at].trim().into() });
    let is_prose = |at: &usize| !lines[*at].trim().is_empty();
    let ministat = text.starts_with("x ") && text.contains("Stddev");
    ministat.then(|| PublishedBlock {
        line: open + 2,
        before: prose((0..open).rev().find(is_prose)).unwrap_or_default(),
        after: prose((close + 1..lines.len()).find(is_prose)).unwrap_or_default(),
        text,
    })
}
