//! Published ministat blocks, printed again from the columns they were made from.

use fullview_lab::ministat::{Set, Style, general, render};
use fullview_lab::stats::Description;
use serde::Serialize;

use crate::block::PublishedBlock;
use crate::folder::Column;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    pub line: usize,
    pub labels: Vec<String>,
    /// The files that the sets were found in.
    pub files: Vec<String>,
    pub outcome: Reproduced,
    #[serde(skip)]
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reproduced {
    /// Byte for byte.
    Exact,
    /// Byte for byte after tabs became eight blanks.
    TabsAsBlanks,
    /// Byte for byte as far as it goes: the published block lacks these lines.
    WithoutLines(String),
    /// No file has this set's figures.
    NoColumn(String),
    /// At this line of the block.
    Different(usize),
}

pub fn reproduce(block: &PublishedBlock, here: &[Column], beside: &[Column]) -> Reproduction {
    let labels: Vec<String> = block.labels().into_iter().map(str::to_owned).collect();
    let rows = block.rows();
    let find = |row: &Vec<&str>| here.iter().chain(beside).find(|column| figures(&column.values) == *row);
    let columns: Vec<Option<&Column>> = rows.iter().map(find).collect();
    let missing = columns.iter().position(Option::is_none);
    let outcome = match missing {
        Some(at) => Reproduced::NoColumn(labels.get(at).cloned().unwrap_or_default()),
        None => compare(block, &sets(&labels, &columns)),
    };
    let files = columns.iter().flatten().map(|column| shown(column)).collect();
    Reproduction { line: block.line, labels, files, outcome, text: block.text.clone() }
}

fn shown(column: &Column) -> String {
    let parts: Vec<_> =
        column.path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn sets(labels: &[String], columns: &[Option<&Column>]) -> Vec<Set> {
    let pairs = labels.iter().zip(columns.iter().flatten());
    pairs.map(|(label, column)| Set { label: label.clone(), values: column.values.clone() }).collect()
}

/// The figures of a set as ministat prints them.
fn figures(values: &[f64]) -> Vec<String> {
    let described = Description::of(values).map(|of| {
        let figures = [of.min, of.max, of.median, of.mean, of.stddev].map(|figure| general(figure, 8));
        std::iter::once(of.n.to_string()).chain(figures).collect()
    });
    described.unwrap_or_default()
}

/// Compares with what each form of ministat prints.
fn compare(block: &PublishedBlock, sets: &[Set]) -> Reproduced {
    let mut nearest = Reproduced::Different(1);
    for (separate_bars, exact_reference) in [(true, false), (true, true), (false, false), (false, true)] {
        let style = Style { separate_bars, exact_reference, width: block.width(), ..Style::default() };
        let outcome =
            render(sets, &style).map_or(Reproduced::Different(1), |ours| difference(&block.text, &ours));
        match (&outcome, &nearest) {
            (Reproduced::Different(at), Reproduced::Different(far)) if at <= far => {}
            (Reproduced::Different(_), Reproduced::Different(_)) => nearest = outcome,
            (Reproduced::Different(_), _) => {}
            _ => return outcome,
        }
    }
    nearest
}

fn difference(published: &str, ours: &str) -> Reproduced {
    let blanks = ours.replace('\t', "        ");
    let (published, text) = (published.trim_end(), blanks.trim_end());
    if published == ours.trim_end() {
        return Reproduced::Exact;
    }
    match text.strip_prefix(published) {
        Some("") => Reproduced::TabsAsBlanks,
        Some(rest) if rest.starts_with('\n') => Reproduced::WithoutLines(rest.trim().into()),
        _ => {
            let same = published.lines().zip(text.lines()).take_while(|(one, other)| one == other).count();
            Reproduced::Different(same + 1)
        }
    }
}
