//! What stands under the bars: level where there is room for words, upright where there is not.

use super::layout::SMALLEST;
use super::text::{Breaks, clip, line_height, width, words_fit, wrap};

/// Ways tried to set the labels under the bars, best first.
const LABELS: [(u32, Breaks); 7] = [
    (31, Breaks::Spaces),
    (28, Breaks::Spaces),
    (25, Breaks::Spaces),
    (25, Breaks::Punctuation),
    (22, Breaks::Spaces),
    (22, Breaks::Punctuation),
    (SMALLEST, Breaks::Punctuation),
];
const MOST_LABEL_LINES: usize = 4;
/// Size of labels that stand upright, and the most room they get.
pub(super) const UPRIGHT: u32 = 24;
const UPRIGHT_ROOM: i32 = 330;

/// Lines of text of one size.
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    pub(super) size: u32,
}

/// What stands under the bars, one a group.
pub(super) enum Labels {
    Level(Vec<Lines>),
    /// Read from bottom to top, each with its length: where the groups are too narrow for a word.
    Upright(Vec<(String, i32)>),
}

impl Labels {
    /// The labels of all groups in the best setting in which no word is broken and few lines are needed.
    pub(super) fn set(texts: &[&str], room: i32) -> Result<Self, String> {
        for (size, breaks) in LABELS {
            if fits(texts, size, room, breaks)? {
                let set = |text: &&str| Ok(Lines { lines: wrap(text, size, room, breaks)?, size });
                return Ok(Self::Level(texts.iter().map(set).collect::<Result<_, String>>()?));
            }
        }
        upright(texts)
    }

    pub(super) fn height(&self) -> i32 {
        match self {
            Self::Level(labels) => labels.iter().map(Lines::height).max().unwrap_or(0),
            Self::Upright(labels) => labels.iter().map(|(_, length)| *length).max().unwrap_or(0),
        }
    }
}

impl Lines {
    pub(super) fn height(&self) -> i32 {
        self.lines.len() as i32 * line_height(self.size)
    }
}

fn upright(texts: &[&str]) -> Result<Labels, String> {
    let set = |text: &&str| {
        let clipped = clip(text, UPRIGHT, UPRIGHT_ROOM)?;
        let length = width(&clipped, UPRIGHT)?;
        Ok((clipped, length))
    };
    Ok(Labels::Upright(texts.iter().map(set).collect::<Result<_, String>>()?))
}

fn fits(texts: &[&str], size: u32, room: i32, breaks: Breaks) -> Result<bool, String> {
    for text in texts {
        let few_lines = wrap(text, size, room, breaks)?.len() <= MOST_LABEL_LINES;
        if !(few_lines && words_fit(text, size, room, breaks)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
