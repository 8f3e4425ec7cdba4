//! Words of a rule set in messages: cut off if they are long, and without characters that a terminal would obey.

/// Longer words are cut off.
const LONGEST_WORD: usize = 60;
/// What is left of one that is.
const KEPT: usize = 40;

/// A message in which every word of the input can be read.
pub fn brief(message: &str) -> String {
    let mut text = String::with_capacity(message.len().min(1024));
    let (mut start, mut length) = (0, 0);
    for character in message.chars() {
        (start, length) = if character == ' ' { (text.len() + 1, 0) } else { (start, length + 1) };
        if length <= LONGEST_WORD {
            push_visible(&mut text, character);
        } else if length == LONGEST_WORD + 1 {
            let end = text[start..].char_indices().nth(KEPT).map_or(text.len(), |(at, _)| start + at);
            text.truncate(end);
            text.push('…');
        }
    }
    text
}

fn push_visible(text: &mut String, character: char) {
    if character.is_control() {
        text.extend(character.escape_default());
    } else {
        text.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_and_the_rest_stays() {
        let message = format!("word '{}' is unknown; write another", "x".repeat(1 << 20));
        let cut = format!("word '{}… is unknown; write another", "x".repeat(KEPT - 1));
        assert_eq!(brief(&message), cut);
        let short = format!("{} ends", "y".repeat(LONGEST_WORD));
        assert_eq!(brief(&short), short);
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(brief("a\u{1b}[2Jb\nc ü"), "a\\u{1b}[2Jb\\nc ü");
    }
}
