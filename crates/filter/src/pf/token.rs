//! The words and signs of a rule set.

use std::fmt;

use crate::pf::error::Position;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenKind {
    /// Text without quotes: a keyword, a name, an address.
    Word(String),
    /// Text in quotes, which is never a keyword.
    Quoted(String),
    Number(u64),
    Sign(char),
    /// `->`
    Arrow,
    /// `><`
    Inside,
    /// `<>`
    Outside,
    Newline,
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub position: Position,
}

impl fmt::Display for TokenKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Word(text) => write!(out, "'{text}'"),
            TokenKind::Quoted(text) => write!(out, "\"{text}\""),
            TokenKind::Number(number) => write!(out, "'{number}'"),
            TokenKind::Sign(sign) => write!(out, "'{sign}'"),
            TokenKind::Arrow => out.write_str("'->'"),
            TokenKind::Inside => out.write_str("'><'"),
            TokenKind::Outside => out.write_str("'<>'"),
            TokenKind::Newline => out.write_str("the end of the line"),
            TokenKind::End => out.write_str("the end of the file"),
        }
    }
}
