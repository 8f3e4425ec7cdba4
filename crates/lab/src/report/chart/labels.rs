//! The labels under the bars: horizontal if the words fit, otherwise upright.

use super::text::{Breaks, SMALLEST, line_height, widest_word, width, words_fit, wrap};

/// Sizes and line breaks to try for the labels, best first.
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
/// Size of upright labels, and the length of their lines unless a word is longer.
const UPRIGHT: u32 = 24;
const UPRIGHT_ROOM: i32 = 330;

pub(super) struct TextBlock {
    pub(super) lines: Vec<String>,
    pub(super) size: u32,
}

/// The labels under the bars, one for each group.
pub(super) enum Labels {
    Level(Vec<TextBlock>),
    /// Labels that read from bottom to top, for groups that are narrower than a word.
    Upright {
        labels: Vec<TextBlock>,
        length: i32,
    },
}

impl Labels {
    /// Sets the labels of all groups in the best way that breaks no word and needs few lines.
    pub(super) fn set(texts: &[&str], room: i32) -> Result<Self, String> {
        for (size, breaks) in LABELS {
            if fits(texts, size, room, breaks)? {
                let set = |text: &&str| Ok(TextBlock { lines: wrap(text, size, room, breaks)?, size });
                return Ok(Self::Level(texts.iter().map(set).collect::<Result<_, String>>()?));
            }
        }
        upright(texts)
    }

    /// The width that an upright label needs; a level label fits the group.
    pub(super) fn width(&self) -> i32 {
        match self {
            Self::Level(_) => 0,
            Self::Upright { labels, .. } => labels.iter().map(TextBlock::height).max().unwrap_or(0),
        }
    }

    pub(super) fn height(&self) -> i32 {
        match self {
            Self::Level(labels) => labels.iter().map(TextBlock::height).max().unwrap_or(0),
            Self::Upright { length, .. } => *length,
        }
    }
}

impl TextBlock {
    pub(super) fn height(&self) -> i32 {
        self.lines.len() as i32 * line_height(self.size)
    }
}

fn upright(texts: &[&str]) -> Result<Labels, String> {
    let mut room = UPRIGHT_ROOM;
    for text in texts {
        room = room.max(widest_word(text, UPRIGHT, Breaks::Punctuation)?);
    }
    let set =
        |text: &&str| Ok(TextBlock { lines: wrap(text, UPRIGHT, room, Breaks::Punctuation)?, size: UPRIGHT });
    let labels = texts.iter().map(set).collect::<Result<Vec<_>, String>>()?;
    let mut length = 0;
    for line in labels.iter().flat_map(|label| &label.lines) {
        length = length.max(width(line, UPRIGHT)?);
    }
    Ok(Labels::Upright { labels, length })
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
