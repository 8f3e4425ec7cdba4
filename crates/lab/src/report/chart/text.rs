//! The width of a text, and its breaks into lines.

use std::sync::OnceLock;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// The font family of both drawings. The PNG uses the font registered under this name; the viewer of the SVG uses its
/// own, so every width includes some [`SLACK`].
pub(super) const FAMILY: FontFamily<'static> = FontFamily::SansSerif;
const SLACK: f64 = 1.06;
/// The smallest size of any text.
pub(super) const SMALLEST: u32 = 19;

/// Registers the font with the drawing library, once per process.
pub(super) fn register() -> Result<(), String> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    let done = REGISTERED.get_or_init(|| register_font(FAMILY.as_str(), FontStyle::Normal, font).is_ok());
    if *done { Ok(()) } else { Err("the built-in font cannot be read".into()) }
}

/// Returns the width of a text in pixels.
pub(super) fn width(text: &str, size: u32) -> Result<i32, String> {
    let font = FontDesc::new(FAMILY, f64::from(size), FontStyle::Normal);
    let (width, _) = font.box_size(text).map_err(|error| error.to_string())?;
    Ok((f64::from(width) * SLACK).ceil() as i32)
}

/// The distance from one line to the next, in pixels.
pub(super) fn line_height(size: u32) -> i32 {
    (f64::from(size) * 1.15).ceil() as i32
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaks {
    /// At spaces only.
    Spaces,
    /// Also after the punctuation inside an identifier: `radix_` / `lockless`.
    Punctuation,
}

/// Breaks a text at spaces or punctuation. Only a word wider than a whole line is broken elsewhere.
pub(super) fn wrap(text: &str, size: u32, room: i32, breaks: Breaks) -> Result<Vec<String>, String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text, breaks) {
        let longer = lines.last().map(|line| format!("{line}{word}"));
        match longer {
            Some(longer) if width(&longer, size)? <= room => {
                lines.pop();
                lines.push(longer);
            }
            _ => lines.extend(pieces(word.trim_start(), size, room)?),
        }
    }
    Ok(lines)
}

/// Whether every unbreakable part of the text fits on a line.
pub(super) fn words_fit(text: &str, size: u32, room: i32, breaks: Breaks) -> Result<bool, String> {
    Ok(widest_word(text, size, breaks)? <= room)
}

/// Returns the width of the widest unbreakable part of the text.
pub(super) fn widest_word(text: &str, size: u32, breaks: Breaks) -> Result<i32, String> {
    words(text, breaks)
        .iter()
        .try_fold(0, |widest: i32, word| Ok(widest.max(width(word.trim_start(), size)?)))
}

/// Splits the text into the parts between which a line may end. A part begins with the space before it, if any.
fn words(text: &str, breaks: Breaks) -> Vec<String> {
    let mut words = Vec::new();
    for (index, word) in text.split_whitespace().enumerate() {
        let spaced = if index == 0 { word.to_owned() } else { format!(" {word}") };
        match breaks {
            Breaks::Spaces => words.push(spaced),
            Breaks::Punctuation => {
                words.extend(spaced.split_inclusive(['_', '-', '/', '.', ',']).map(String::from))
            }
        }
    }
    words
}

fn pieces(word: &str, size: u32, room: i32) -> Result<Vec<String>, String> {
    let mut pieces = vec![String::new()];
    for letter in word.chars() {
        let last = pieces.len() - 1;
        let longer = format!("{}{letter}", pieces[last]);
        if width(&longer, size)? <= room || pieces[last].is_empty() {
            pieces[last] = longer;
        } else {
            pieces.push(letter.to_string());
        }
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_word_that_is_too_wide_is_broken() {
        register().unwrap();
        let room = width("some words", 20).unwrap();
        assert_eq!(wrap("some words here", 20, room, Breaks::Spaces).unwrap(), ["some words", "here"]);
        let lines = wrap("an_unbreakable_identifier", 20, room, Breaks::Spaces).unwrap();
        assert!(lines.len() > 1);
        assert_eq!(lines.concat(), "an_unbreakable_identifier");
        for line in lines {
            assert!(width(&line, 20).unwrap() <= room);
        }
    }

    #[test]
    fn identifiers_break_at_their_punctuation() {
        register().unwrap();
        let room = width("lockless_", 20).unwrap();
        let lines = wrap("radix6_lockless x", 20, room, Breaks::Punctuation).unwrap();
        assert_eq!(lines, ["radix6_", "lockless", "x"]);
        assert!(!words_fit("radix6_lockless", 20, room, Breaks::Spaces).unwrap());
        assert!(words_fit("radix6_lockless", 20, room, Breaks::Punctuation).unwrap());
    }
}
