//! Splits a file into statements, and a statement into words and signs.

use std::collections::HashMap;

use crate::pf::characters::Characters;
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::token::{Token, TokenKind};

pub type Macros = HashMap<String, String>;

/// Longer words are no names, numbers or addresses.
const LONGEST_WORD: usize = 8_000;

/// A macro may hold a macro twice, and so on.
const MOST_EXPANDED: usize = 1 << 24;

pub struct Lexer {
    characters: Characters,
    /// Characters of macros so far.
    expanded: usize,
}

impl Lexer {
    pub fn new(file: &str, text: &str) -> Lexer {
        Lexer { characters: Characters::new(file, text), expanded: 0 }
    }

    /// The tokens up to the end of a line that is not inside braces, and that end. Macros are those defined so far.
    pub fn statement(&mut self, macros: &Macros) -> PfResult<Vec<Token>> {
        let mut tokens = Vec::new();
        let mut depth = 0_usize;
        loop {
            let token = self.token(macros)?;
            match token.kind {
                TokenKind::Sign('{') => depth += 1,
                TokenKind::Sign('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            let ends = token.kind == TokenKind::End || (token.kind == TokenKind::Newline && depth == 0);
            tokens.push(token);
            if ends {
                return Ok(tokens);
            }
        }
    }

    fn token(&mut self, macros: &Macros) -> PfResult<Token> {
        loop {
            self.skip_blanks();
            let position = self.characters.position();
            if self.characters.peek() == Some('$') && !self.characters.in_macro() {
                self.expand_macro(macros, &position)?;
                continue;
            }
            return Ok(Token { kind: self.kind(&position)?, position });
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.characters.peek(), Some(' ' | '\t' | '\r' | '\x0b' | '\x0c')) {
            self.characters.next();
        }
        if self.characters.peek() == Some('#') {
            while !matches!(self.characters.peek(), None | Some('\n')) {
                self.characters.next();
            }
        }
    }

    fn expand_macro(&mut self, macros: &Macros, position: &Position) -> PfResult<()> {
        self.characters.next();
        let name =
            self.take_while(position, |character| character.is_ascii_alphanumeric() || character == '_')?;
        let text = macros.get(&name).ok_or_else(|| PfError::undefined_macro(position, &name))?;
        self.expanded += text.len();
        if self.expanded > MOST_EXPANDED {
            return Err(PfError::invalid(
                position,
                format!("the macros up to here stand for more than {MOST_EXPANDED} characters"),
                "write shorter ones, or a table",
            ));
        }
        self.characters.insert(text);
        Ok(())
    }

    fn kind(&mut self, position: &Position) -> PfResult<TokenKind> {
        match self.characters.peek() {
            None => Ok(TokenKind::End),
            Some(quote @ ('"' | '\'')) => self.quoted(quote, position),
            Some(first) if starts_word(first) => self.word(position),
            Some(_) => Ok(self.sign()),
        }
    }

    fn quoted(&mut self, quote: char, position: &Position) -> PfResult<TokenKind> {
        self.characters.next();
        let mut text = String::new();
        loop {
            let next = self.characters.next_verbatim();
            match next.ok_or_else(|| unclosed(position, quote))? {
                '\n' => {}
                '\\' if self.characters.peek_verbatim() == Some('\n') => {}
                character if character == quote => return Ok(TokenKind::Quoted(text)),
                '\\' if self.characters.peek_verbatim() == Some(quote) => {
                    text.extend(self.characters.next_verbatim())
                }
                character => text.push(character),
            }
            ensure_short(text.len(), position)?;
        }
    }

    fn word(&mut self, position: &Position) -> PfResult<TokenKind> {
        let word = self.take_while(position, continues_word)?;
        if !word.chars().all(|character| character.is_ascii_digit()) {
            return Ok(TokenKind::Word(word));
        }
        let too_large =
            |_| PfError::invalid(position, format!("{word} is too large a number"), "write a smaller one");
        word.parse().map(TokenKind::Number).map_err(too_large)
    }

    fn take_while(&mut self, position: &Position, belongs: fn(char) -> bool) -> PfResult<String> {
        let mut text = String::new();
        while let Some(character) = self.characters.peek().filter(|character| belongs(*character)) {
            self.characters.next();
            text.push(character);
            ensure_short(text.len(), position)?;
        }
        Ok(text)
    }

    fn sign(&mut self) -> TokenKind {
        let first = self.characters.next();
        match (first, self.characters.peek()) {
            (Some('\n'), _) => TokenKind::Newline,
            (Some('<'), Some('>')) => self.second(TokenKind::Outside),
            (Some('>'), Some('<')) => self.second(TokenKind::Inside),
            (Some('-'), Some('>')) => self.second(TokenKind::Arrow),
            (Some(sign), _) => TokenKind::Sign(sign),
            (None, _) => TokenKind::End,
        }
    }

    fn second(&mut self, kind: TokenKind) -> TokenKind {
        self.characters.next();
        kind
    }
}

fn starts_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == ':' || character == '_'
}

fn continues_word(character: char) -> bool {
    let separates = matches!(character, '(' | ')' | '{' | '}' | '<' | '>' | '!' | '=' | '/' | '#' | ',');
    character.is_ascii_alphanumeric() || (character.is_ascii_punctuation() && !separates)
}

fn ensure_short(length: usize, position: &Position) -> PfResult<()> {
    if length <= LONGEST_WORD {
        return Ok(());
    }
    Err(PfError::invalid(
        position,
        "the text is too long",
        format!("write at most {LONGEST_WORD} characters"),
    ))
}

fn unclosed(position: &Position, quote: char) -> PfError {
    PfError::invalid(position, "the quoted text does not end", format!("write {quote} after it"))
}
