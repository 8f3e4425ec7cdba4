//! The tokens of a statement, read from left to right.

use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::names::reserved::{instead_of, is_reserved};
use crate::pf::token::{Token, TokenKind};

/// Names longer than this have no room in pf.
const LONGEST_NAME: usize = 63;

pub struct Tokens {
    /// Never empty: the end of the line or file is the last.
    tokens: Vec<Token>,
    at: usize,
    /// How deep lists and anchors are nested here.
    depth: usize,
}

/// Deeper nesting is no rule set, but an attack on the stack.
const DEEPEST: usize = 32;

impl Tokens {
    /// `tokens` end with a newline or the end of the file.
    pub fn new(tokens: Vec<Token>) -> Tokens {
        Tokens { tokens, at: 0, depth: 0 }
    }

    pub fn current(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    pub fn kind(&self) -> &TokenKind {
        &self.current().kind
    }

    pub fn position(&self) -> Position {
        self.current().position.clone()
    }

    pub fn advance(&mut self) {
        self.at += 1;
    }

    pub fn at_end(&self) -> bool {
        matches!(self.kind(), TokenKind::Newline | TokenKind::End)
    }

    /// The text of a word without quotes, which may be a keyword.
    pub fn word(&self) -> Option<&str> {
        match self.kind() {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    /// Whether the next word, after the current token, is this.
    pub fn second_is(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Token { kind: TokenKind::Word(second), .. }) if second == word)
    }

    pub fn second_is_sign(&self, sign: char) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Token { kind: TokenKind::Sign(second), .. }) if *second == sign)
    }

    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub fn is_sign(&self, sign: char) -> bool {
        *self.kind() == TokenKind::Sign(sign)
    }

    pub fn eat_sign(&mut self, sign: char) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub fn expect_word(&mut self, word: &str) -> PfResult<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(&format!("'{word}'"))) }
    }

    pub fn expect_sign(&mut self, sign: char) -> PfResult<()> {
        if self.eat_sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    pub fn skip_newlines(&mut self) {
        while *self.kind() == TokenKind::Newline {
            self.advance();
        }
    }

    /// The error for the current token: that it is not supported, or that something else should stand there.
    pub fn unexpected(&self, expected: &str) -> PfError {
        let token = self.current();
        match self.word().and_then(|word| Some((word, instead_of(word)?))) {
            Some((word, instead)) => PfError::refused(&token.position, word, instead),
            None => PfError::syntax(&token.position, token.kind.to_string(), expected),
        }
    }

    pub fn invalid(&self, problem: impl Into<String>, fix: impl Into<String>) -> PfError {
        PfError::invalid(&self.current().position, problem, fix)
    }

    /// Text in quotes or a word that is no keyword.
    pub fn text(&mut self, expected: &str) -> PfResult<String> {
        let text = match self.kind() {
            TokenKind::Word(word) if !is_reserved(word) => word.clone(),
            TokenKind::Quoted(text) => text.clone(),
            _ => return Err(self.unexpected(expected)),
        };
        self.advance();
        Ok(text)
    }

    /// A name that can be written without quotes, as pfctl prints it.
    pub fn name(&mut self, expected: &str) -> PfResult<String> {
        let position = self.position();
        let name = self.text(expected)?;
        if name.len() <= LONGEST_NAME && is_plain(&name) && !is_reserved(&name) {
            return Ok(name);
        }
        let fix = format!("use at most {LONGEST_NAME} letters, digits and any of . - _ : and no keyword");
        Err(PfError::invalid(&position, format!("\"{name}\" is no name for {expected}"), fix))
    }

    /// What stands in braces, or one item without braces. Commas between items may be missing.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Tokens) -> PfResult<T>) -> PfResult<Vec<T>> {
        if !self.eat_sign('{') {
            return Ok(vec![item(self)?]);
        }
        self.nested(|tokens| {
            let mut items = Vec::new();
            tokens.skip_newlines();
            while items.is_empty() || !tokens.eat_sign('}') {
                items.push(item(tokens)?);
                tokens.skip_newlines();
                tokens.eat_sign(',');
                tokens.skip_newlines();
            }
            Ok(items)
        })
    }

    /// Reads what is nested one level deeper.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Tokens) -> PfResult<T>) -> PfResult<T> {
        if self.depth == DEEPEST {
            return Err(self.invalid("braces are nested too deep", format!("nest at most {DEEPEST}")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// A statement ends here.
    pub fn finish(&mut self) -> PfResult<()> {
        if self.at_end() { Ok(()) } else { Err(self.unexpected("an option or the end of the line")) }
    }
}

/// Whether a name is one word, and one that starts like a word.
pub fn is_plain(name: &str) -> bool {
    let inside = |character: char| character.is_ascii_alphanumeric() || ".-_:".contains(character);
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.chars().all(inside)
}
