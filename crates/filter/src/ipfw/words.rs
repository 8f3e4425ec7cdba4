//! The words of a command, with their places.

use std::ops::RangeInclusive;

use super::error::IpfwError;

/// Numbers that a command may give to something (`IPFW_ARG_MIN` to `IPFW_ARG_MAX`).
pub(super) const NAMEABLE: RangeInclusive<u32> = 1..=65534;

/// A word and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub line: usize,
    pub column: usize,
}

/// The words of one command, read from left to right.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    file: &'a str,
    words: &'a [Word],
    at: usize,
}

pub(super) type Parsed<T> = Result<T, IpfwError>;

impl<'a> Words<'a> {
    pub fn new(file: &'a str, words: &'a [Word]) -> Self {
        Words { file, words, at: 0 }
    }

    /// The next word, which stays.
    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(|word| word.text.as_str())
    }

    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.at += usize::from(word.is_some());
        word
    }

    /// The next word, which must be there.
    pub fn need(&mut self, what: &str) -> Parsed<&'a str> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.error_here(format!("the command ends where {what} must follow"))),
        }
    }

    /// Takes the next word if it is this one.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.take(word) {
            return Ok(());
        }
        let found = self.peek().map_or("the end of the command".to_owned(), |word| format!("`{word}`"));
        Err(self.error_here(format!("{found} stands where `{word}` must follow")))
    }

    /// All words that are left, joined by spaces.
    pub fn rest(&mut self) -> String {
        let rest: Vec<_> = self.words[self.at..].iter().map(|word| word.text.as_str()).collect();
        self.at = self.words.len();
        rest.join(" ")
    }

    pub fn is_done(&self) -> bool {
        self.at == self.words.len()
    }

    /// The command must end here.
    pub fn end(&self) -> Parsed<()> {
        if self.is_done() {
            Ok(())
        } else {
            Err(self.error_here("the command must end here; remove the rest"))
        }
    }

    /// An error about the word that was read last.
    pub fn error(&self, message: impl Into<String>) -> IpfwError {
        self.error_at(self.at.saturating_sub(1), message.into())
    }

    /// An error about the next word.
    pub fn error_here(&self, message: impl Into<String>) -> IpfwError {
        self.error_at(self.at, message.into())
    }

    fn error_at(&self, at: usize, message: String) -> IpfwError {
        let (line, column) = match (self.words.get(at), self.words.last()) {
            (Some(word), _) => (word.line, word.column),
            (None, Some(last)) => (last.line, last.column + last.text.len()),
            (None, None) => (1, 1),
        };
        IpfwError::new(self.file, line, column, &message)
    }

    /// The next word as a number up to `most`.
    pub fn number(&mut self, what: &str, most: u32) -> Parsed<u32> {
        self.number_of(what, 0..=most)
    }

    /// The next word as one of these numbers.
    pub fn number_of(&mut self, what: &str, range: RangeInclusive<u32>) -> Parsed<u32> {
        let word = self.need(what)?;
        let number = word.parse().ok().filter(|number| range.contains(number));
        let (least, most) = range.into_inner();
        number.ok_or_else(|| {
            self.error(format!("`{word}` is not {what}; write a number from {least} to {most}"))
        })
    }
}
