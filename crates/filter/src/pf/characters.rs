//! The characters of one file, with the text of macros in between and without the line ends that a backslash hides.

use std::sync::Arc;

use crate::pf::error::Position;

pub struct Characters {
    text: Vec<char>,
    at: usize,
    position: Position,
    /// What is left of a macro's text, the next character last.
    inserted: Vec<char>,
}

impl Characters {
    pub fn new(file: &str, text: &str) -> Characters {
        let position = Position { file: Arc::from(file), line: 1, column: 1 };
        Characters { text: text.chars().collect(), at: 0, position, inserted: Vec::new() }
    }

    pub fn position(&self) -> Position {
        self.position.clone()
    }

    pub fn in_macro(&self) -> bool {
        !self.inserted.is_empty()
    }

    /// Lets the text of a macro come before the rest of the file.
    pub fn insert(&mut self, text: &str) {
        self.inserted.extend(text.chars().rev());
    }

    /// The next character, after the line ends that a backslash hides.
    pub fn peek(&mut self) -> Option<char> {
        if let Some(character) = self.inserted.last() {
            return Some(*character);
        }
        while self.text.get(self.at) == Some(&'\\') {
            let hides_line_end = self.text.get(self.at + 1) == Some(&'\n');
            self.advance();
            if !hides_line_end {
                break;
            }
            self.advance();
        }
        self.text.get(self.at).copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.take();
        Some(character)
    }

    /// The next character as it stands in the file: what quotes enclose.
    pub fn next_verbatim(&mut self) -> Option<char> {
        let character = self.inserted.last().or(self.text.get(self.at)).copied()?;
        self.take();
        Some(character)
    }

    pub fn peek_verbatim(&self) -> Option<char> {
        self.inserted.last().or(self.text.get(self.at)).copied()
    }

    fn take(&mut self) {
        if self.inserted.pop().is_none() {
            self.advance();
        }
    }

    fn advance(&mut self) {
        if self.text.get(self.at) == Some(&'\n') {
            self.position.line += 1;
            self.position.column = 1;
        } else {
            self.position.column += 1;
        }
        self.at += 1;
    }
}
